"""Reading triggers, their cache and their fallback (`spec 10, 3.1, 3.4, 3.5`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_sim.autoscaling.fleet_view import View
from dynamo_sim.autoscaling.kubernetes.hpa.pods import Pod
from dynamo_sim.autoscaling.kubernetes.hpa.quantity import value_milli
from dynamo_sim.autoscaling.kubernetes.hpa.replicas import MetricFailed
from dynamo_sim.autoscaling.kubernetes.hpa.spec import HpaMetric
from dynamo_sim.autoscaling.kubernetes.keda.spec import (
    CronTrigger,
    MetricTrigger,
    ResourceTrigger,
    ScaledObjectSpec,
)
from dynamo_sim.autoscaling.metrics.query import MetricQuery

Source = MetricTrigger | CronTrigger

OUTSIDE_CRON = 1.0
"""What a cron trigger reports while its window is closed."""


@dataclass(frozen=True, slots=True)
class Polled:
    """A poll of the operator: whether any trigger is active, whether some failed, and the values by trigger."""

    active: bool
    error: bool
    values: dict[str, float | None]


class Scalers:
    """The triggers of a ScaledObject that have a value, and what the HPA gets of them."""

    def __init__(self, spec: ScaledObjectSpec) -> None:
        self.spec = spec
        self.sources: tuple[Source, ...] = tuple(
            trigger for trigger in spec.triggers if not isinstance(trigger, ResourceTrigger)
        )
        self.labels = [_label(source, index) for index, source in enumerate(self.sources)]
        self._cache: dict[int, float | None] = {}
        self._failures: dict[int, int] = {}

    @property
    def reads(self) -> tuple[MetricQuery, ...]:
        """What is asked of the metrics."""
        return tuple(source.query for source in self.sources if isinstance(source, MetricTrigger))

    def hpa_metrics(self) -> tuple[HpaMetric, ...]:
        """The metrics of the HPA: the composite or one a trigger, then the resources."""
        nothing = MetricQuery("in_flight")  # never asked: `total` answers for these
        modifiers = self.spec.modifiers
        if modifiers is not None:
            totals = [
                HpaMetric(
                    "External", modifiers.metric_type, modifiers.target_milli, nothing, modifiers.formula.text
                )
            ]
        else:
            totals = [
                HpaMetric("External", source.metric_type, source.threshold_milli, nothing, label)
                for source, label in zip(self.sources, self.labels, strict=True)
            ]
        resources = [trigger.metric for trigger in self.spec.triggers if isinstance(trigger, ResourceTrigger)]
        return (*totals, *resources)

    def poll(self, view: View, now_s: float) -> Polled:
        """Read every trigger for the operator, and keep the values for those that are cached."""
        values: dict[str, float | None] = {}
        active = error = False
        for index, (source, label) in enumerate(zip(self.sources, self.labels, strict=True)):
            try:
                value: float | None = _read(source, view, now_s)
            except MetricFailed:
                value = None
                error = True
            self._cache[index] = values[label] = value
            if isinstance(source, CronTrigger):
                active |= source.window.is_open(now_s)
            else:
                active |= value is not None and value > source.activation
        modifiers = self.spec.modifiers
        if modifiers is not None:
            active = False
            try:
                composite = self._composite(values)
            except MetricFailed:
                error = True
            else:
                values[modifiers.formula.text] = composite
                active = composite > modifiers.activation
        return Polled(active, error, values)

    def total(self, index: int, current: int, pods: Sequence[Pod], view: View, now_s: float) -> int:
        """The value of the HPA's metric ``index`` in thousandths, by fallback if it has failed too often.

        Raises:
            MetricFailed: it fails, and there is no fallback (yet).
        """
        try:
            value = self._value(index, view, now_s)
        except MetricFailed:
            self._failures[index] = self._failures.get(index, 0) + 1
            return self._fallback(index, current, pods)
        self._failures[index] = 0
        return value_milli(value)

    def _value(self, index: int, view: View, now_s: float) -> float:
        if self.spec.modifiers is None:
            return self._read_for_hpa(index, view, now_s)
        values: dict[str, float | None] = {}
        for at, label in enumerate(self.labels):
            values[label] = self._read_for_hpa(at, view, now_s)
        return self._composite(values)

    def _read_for_hpa(self, index: int, view: View, now_s: float) -> float:
        source = self.sources[index]
        if source.use_cached and index in self._cache:
            value = self._cache[index]
            if value is None:
                raise MetricFailed("the cached value is an error")
            return value
        return _read(source, view, now_s)

    def _composite(self, values: dict[str, float | None]) -> float:
        assert self.spec.modifiers is not None
        numbers = {name: value for name, value in values.items() if value is not None}
        try:
            return self.spec.modifiers.formula(numbers)
        except (ValueError, KeyError) as error:
            raise MetricFailed(str(error)) from error

    def _fallback(self, index: int, current: int, pods: Sequence[Pod]) -> int:
        fallback = self.spec.fallback
        if fallback is None or self._failures[index] <= fallback.failure_threshold:
            raise MetricFailed(f"failed {self._failures[index]} times in a row")
        replicas = {
            "static": fallback.replicas,
            "currentReplicas": current,
            "currentReplicasIfHigher": max(current, fallback.replicas),
            "currentReplicasIfLower": min(current, fallback.replicas),
        }[fallback.behavior]
        metric = self.hpa_metrics()[index]
        if metric.target_type != "Value":
            return metric.target * replicas
        ready = sum(pod.is_active for pod in pods)
        if ready == 0:
            raise MetricFailed("fallback of a Value target without a ready worker")
        return metric.target * replicas // ready


def _read(source: Source, view: View, now_s: float) -> float:
    if isinstance(source, CronTrigger):
        return float(source.desired) if source.window.is_open(now_s) else OUTSIDE_CRON
    value = view.value(source.query)
    if value is None:
        if source.ignore_null:
            return 0.0
        raise MetricFailed("no data")
    return value


def _label(source: Source, index: int) -> str:
    return source.name or f"trigger {index}"
