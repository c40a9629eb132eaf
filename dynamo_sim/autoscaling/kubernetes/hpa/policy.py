"""The HPA as a policy: reads its metrics from the view, then syncs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.kubernetes.hpa.pods import Pod, PodSample, group_pods, pods_of
from dynamo_sim.autoscaling.kubernetes.hpa.quantity import value_milli
from dynamo_sim.autoscaling.kubernetes.hpa.reach import hpa_caveats
from dynamo_sim.autoscaling.kubernetes.hpa.replicas import MetricFailed, per_pod_replicas, total_replicas
from dynamo_sim.autoscaling.kubernetes.hpa.spec import (
    POD_TYPES,
    TOTAL_TYPES,
    HpaMetric,
    HpaSpec,
    HpaState,
    Tolerance,
)
from dynamo_sim.autoscaling.kubernetes.hpa.sync import SyncResult, begin_history, sync
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policy import HPA, Policy
from dynamo_sim.records.readings import Reading, Threshold
from dynamo_sim.scenario.autoscaler.manifest import HpaFlags


class HpaPolicy(Policy):
    """HorizontalPodAutoscaler autoscaling/v2.

    Args:
        spec: the manifest.
        flags: of the controller.
    """

    order = HPA

    def __init__(self, spec: HpaSpec, flags: HpaFlags | None = None) -> None:
        self.spec = spec
        self.flags = flags or HpaFlags()
        self.period_s = self.flags.sync_period_s
        self.reads = tuple(metric.query for metric in spec.metrics)
        self.state = HpaState()
        self.tolerance = Tolerance.of(spec.behavior, self.flags)
        self.may_empty_fleet = spec.min_replicas == 0

    def metric_queries(self) -> Sequence[MetricQuery | None]:
        """What each metric of the spec is read by; None for what is computed from several."""
        return [metric.query for metric in self.spec.metrics]

    def readings(self) -> list[Reading]:
        return [
            _reading(metric, query)
            for metric, query in zip(self.spec.metrics, self.metric_queries(), strict=True)
        ]

    def caveats(self, facts: FleetFacts) -> Iterator[str]:
        return hpa_caveats(self.spec, self.tolerance, self.metric_queries(), facts)

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        spec = self.spec
        current = fleet.effective
        begin_history(self.state, current, now_s)
        values: dict[str, float | None] = {}
        events: list[str] = []

        def recommendations() -> Sequence[int | None]:
            pods = pods_of(fleet)
            return [
                self._recommendation(index, metric, current, pods, view, now_s, values, events)
                for index, metric in enumerate(spec.metrics)
            ]

        result = sync(
            self.state,
            current,
            spec.min_replicas,
            spec.max_replicas,
            spec.behavior,
            recommendations,
            now_s,
            self.flags,
        )
        events += self._stabilisation(result)
        return Decision(
            result.target,
            result.reason,
            result.recommendation,
            result.stabilised,
            values,
            events=tuple(events),
        )

    def _stabilisation(self, result: SyncResult) -> Iterator[str]:
        """What a stabilisation window did, in plain words; the controller's reasons do not say it."""
        if (
            result.stabilised is None
            or result.recommendation is None
            or result.stabilised == result.recommendation
        ):
            return
        behavior, down = self.spec.behavior, result.stabilised > result.recommendation
        window = self.flags.downscale_stabilization_s
        if behavior is not None:
            own = (behavior.down if down else behavior.up).stabilization_window_s
            window = own if own is not None else window if down else 0.0
        yield (
            f"the metrics ask for {result.recommendation}; the stabilisation window of "
            f"scale-{'down' if down else 'up'} ({window:g} s) makes it {result.stabilised}"
        )

    def read_total(
        self, index: int, metric: HpaMetric, current: int, pods: Sequence[Pod], view: View, now_s: float
    ) -> int:
        """An ``Object`` or ``External`` metric in thousandths.

        Raises:
            MetricFailed: no data.
        """
        value = view.value(metric.query)
        if value is None:
            raise MetricFailed("no data")
        return value_milli(value)

    def _recommendation(
        self,
        index: int,
        metric: HpaMetric,
        current: int,
        pods: Sequence[Pod],
        view: View,
        now_s: float,
        values: dict[str, float | None],
        events: list[str],
    ) -> int | None:
        label = metric.name or str(metric.query)
        values[label] = None
        try:
            if metric.source in POD_TYPES:
                samples = view.per_worker(metric.query)
                present = {pod.id for pod in pods}
                milli = {
                    worker: PodSample(value_milli(sample.value), sample.at_s, sample.window_s)
                    for worker, sample in samples.items()
                    if worker in present
                }
                values[label] = _mean(milli)
                is_cpu = metric.source == "Resource" and metric.name == "cpu"
                groups = group_pods(
                    pods,
                    milli,
                    is_cpu,
                    now_s,
                    self.flags.cpu_initialization_period_s,
                    self.flags.initial_readiness_delay_s,
                )
                requests = {pod.id: metric.request_milli for pod in pods}
                return per_pod_replicas(
                    current, metric.target_type, metric.target, groups, milli, requests, self.tolerance
                )
            total = self.read_total(index, metric, current, pods, view, now_s)
            values[label] = total / 1000
            return total_replicas(current, metric.target_type, metric.target, total, pods, self.tolerance)
        except MetricFailed as failure:
            events.append(f"{label}: {failure}")
            return None


def _mean(milli: Mapping[int, PodSample]) -> float | None:
    return sum(sample.milli for sample in milli.values()) / len(milli) / 1000 if milli else None


def _reading(metric: HpaMetric, query: MetricQuery | None) -> Reading:
    unit = ""
    if query is not None:
        unit = f"{query.unit} {query.scope if metric.source in TOTAL_TYPES else 'per worker'}".strip()
    if metric.target_type == "Utilization":
        limit = Threshold(metric.target / 100 * metric.request_milli / 1000)
    else:
        per_worker = metric.source in TOTAL_TYPES and metric.target_type == "AverageValue"
        limit = Threshold(metric.target / 1000, per_worker=per_worker)
    return Reading(metric.name or str(metric.query), unit, (limit,))
