"""A ScaledObject as a policy of two loops: the operator's poll, then the HPA's sync (`spec 10, 3.2`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.kubernetes.hpa.pods import Pod, pods_of
from dynamo_sim.autoscaling.kubernetes.hpa.policy import HpaPolicy
from dynamo_sim.autoscaling.kubernetes.hpa.spec import HpaMetric, HpaSpec
from dynamo_sim.autoscaling.kubernetes.keda.formula_check import doubtful_formula
from dynamo_sim.autoscaling.kubernetes.keda.operator import OperatorState, operator_target
from dynamo_sim.autoscaling.kubernetes.keda.scalers import Scalers
from dynamo_sim.autoscaling.kubernetes.keda.spec import CronTrigger, MetricTrigger, ScaledObjectSpec
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policy import HPA, KEDA_OPERATOR, Loop, Policy
from dynamo_sim.scenario.autoscaler.manifest import HpaFlags


class KedaOperator(Policy):
    """The operator's loop: activates, deactivates, and nothing else."""

    def __init__(self, spec: ScaledObjectSpec, scalers: Scalers) -> None:
        self.spec = spec
        self.reads = scalers.reads
        self.state = OperatorState()
        self._scalers = scalers

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        polled = self._scalers.poll(view, now_s, fleet.effective, pods_of(fleet))
        target, reason = operator_target(
            self.spec.keys, self.state, fleet.effective, polled.active, polled.error, now_s
        )
        return Decision(target, reason, values=polled.values)


class KedaHpa(HpaPolicy):
    """The HPA a ScaledObject makes; its totals are the triggers' values."""

    def __init__(self, spec: ScaledObjectSpec, scalers: Scalers, flags: HpaFlags | None = None) -> None:
        made = HpaSpec(
            max_replicas=spec.keys.max_replicas,
            min_replicas=spec.keys.min_replicas if spec.keys.min_replicas > 0 else 1,
            metrics=scalers.hpa_metrics(),
            behavior=spec.keys.behavior,
            name=f"keda-hpa-{spec.name}",
        )
        super().__init__(made, flags)
        resources = made.metrics[len(made.metrics) - sum(m.source == "Resource" for m in made.metrics) :]
        self.reads = (*scalers.reads, *(metric.query for metric in resources))
        self._scalers = scalers

    def metric_queries(self) -> Sequence[MetricQuery | None]:
        sources = self._scalers.sources
        read = [source.query if isinstance(source, MetricTrigger) else None for source in sources]
        totals = read if self._scalers.spec.modifiers is None else [None]  # a formula reads several
        return [*totals, *(metric.query for metric in self.spec.metrics[len(totals) :])]

    def read_total(
        self, index: int, metric: HpaMetric, current: int, pods: Sequence[Pod], view: View, now_s: float
    ) -> int:
        return self._scalers.total(index, current, pods, view, now_s)


class KedaPolicy(Policy):
    """A ScaledObject: ``operator`` and ``hpa``, each a policy of its own.

    Args:
        spec: the manifest.
        flags: of the HPA controller.
        first_at_s: time of the first poll and sync; None for 0 (the creation) and one period.
    """

    def __init__(
        self, spec: ScaledObjectSpec, flags: HpaFlags | None = None, first_at_s: float | None = None
    ) -> None:
        self.spec = spec
        scalers = Scalers(spec)
        self.operator = KedaOperator(spec, scalers)
        self.hpa = KedaHpa(spec, scalers, flags)
        self.reads = self.hpa.reads
        self.loops = (
            Loop(
                "keda-operator", self.operator, spec.keys.polling_interval_s, first_at_s or 0.0, KEDA_OPERATOR
            ),
            Loop("keda-hpa", self.hpa, self.hpa.flags.sync_period_s, first_at_s, HPA),
        )
        smallest = spec.keys.min_replicas if spec.keys.idle_replicas is None else spec.keys.idle_replicas
        self.may_empty_fleet = smallest == 0 and not any(isinstance(t, CronTrigger) for t in spec.triggers)

    def caveats(self, facts: FleetFacts) -> Iterator[str]:
        yield from doubtful_formula(self.spec, facts.ceiling)
        if self.spec.keys.fallback is not None and not self.spec.has_valid_fallback:
            yield "the fallback has no effect: beside a formula KEDA takes it only where the target is a whole number"
        for trigger in self.spec.triggers:
            if isinstance(trigger, MetricTrigger):
                yield from _activation(trigger, self.spec.keys.max_replicas, facts)
        if self.spec.modifiers is None:
            yield from self.hpa.caveats(facts)


def _activation(trigger: MetricTrigger, max_replicas: int, facts: FleetFacts) -> Iterator[str]:
    if trigger.activation < 0:
        yield (
            f"{trigger.name or trigger.query} is never below 0, so with the activation threshold "
            f"{trigger.activation:g} it is active for ever"
        )
    top = facts.ceiling(trigger.query, max_replicas)
    if top is not None and trigger.activation >= top:
        yield (
            f"{trigger.name or trigger.query} is never above {top:g}, so the activation threshold "
            f"{trigger.activation:g} never wakes the fleet"
        )
