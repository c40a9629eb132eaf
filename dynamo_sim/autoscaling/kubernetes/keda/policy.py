"""A ScaledObject as a policy of two loops: the operator's poll, then the HPA's sync."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.kubernetes.hpa.pods import Pod
from dynamo_sim.autoscaling.kubernetes.hpa.policy import HpaPolicy
from dynamo_sim.autoscaling.kubernetes.hpa.spec import HpaMetric, HpaSettings, HpaSpec
from dynamo_sim.autoscaling.kubernetes.keda.operator import OperatorState, operator_target
from dynamo_sim.autoscaling.kubernetes.keda.scalers import Scalers
from dynamo_sim.autoscaling.kubernetes.keda.spec import ScaledObjectSpec
from dynamo_sim.autoscaling.loop import HPA, KEDA_OPERATOR, Loop


class KedaOperator:
    """The operator's loop: activates, deactivates, and nothing else."""

    def __init__(self, spec: ScaledObjectSpec, scalers: Scalers) -> None:
        self.spec = spec
        self.reads = scalers.reads
        self.state = OperatorState()
        self._scalers = scalers

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        polled = self._scalers.poll(view, now_s)
        target, reason = operator_target(
            self.spec, self.state, fleet.effective, polled.active, polled.error, now_s
        )
        return Decision(target, reason, values=polled.values)


class KedaHpa(HpaPolicy):
    """The HPA a ScaledObject makes; its totals are the triggers' values."""

    def __init__(self, spec: ScaledObjectSpec, scalers: Scalers, settings: HpaSettings | None = None) -> None:
        made = HpaSpec(
            max_replicas=spec.max_replicas,
            min_replicas=spec.min_replicas if spec.min_replicas > 0 else 1,
            metrics=scalers.hpa_metrics(),
            behavior=spec.behavior,
            name=f"keda-hpa-{spec.name}",
        )
        super().__init__(made, settings)
        resources = made.metrics[len(made.metrics) - sum(m.source == "Resource" for m in made.metrics) :]
        self.reads = (*scalers.reads, *(metric.query for metric in resources))
        self.sources = scalers.sources
        self._scalers = scalers

    def read_total(
        self, index: int, metric: HpaMetric, current: int, pods: Sequence[Pod], view: View, now_s: float
    ) -> int:
        return self._scalers.total(index, current, pods, view, now_s)


class KedaPolicy:
    """A ScaledObject: ``operator`` and ``hpa``, each a policy of its own.

    Args:
        spec: the manifest.
        settings: flags of the HPA controller.
        first_at_s: time of the first poll and sync; None for one period of each.
    """

    def __init__(
        self, spec: ScaledObjectSpec, settings: HpaSettings | None = None, first_at_s: float | None = None
    ) -> None:
        self.spec = spec
        scalers = Scalers(spec)
        self.operator = KedaOperator(spec, scalers)
        self.hpa = KedaHpa(spec, scalers, settings)
        self.reads = self.hpa.reads
        self.loops = (
            Loop("keda-operator", self.operator, spec.polling_interval_s, first_at_s, KEDA_OPERATOR),
            Loop("keda-hpa", self.hpa, self.hpa.period_s, first_at_s, HPA),
        )
