"""Reading triggers, counting their failures, and what replaces those that fail (`spec 10, 3.1, 3.4, 3.5`).

The rules are those of KEDA 2.20: a failure is counted by the operator's poll and by the HPA's read alike, and a trigger
beyond its failure threshold has the value of its fallback for both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynamo_sim.autoscaling.fleet_view import View
from dynamo_sim.autoscaling.kubernetes.hpa.pods import Pod
from dynamo_sim.autoscaling.kubernetes.hpa.replicas import MetricFailed
from dynamo_sim.autoscaling.kubernetes.hpa.spec import HpaMetric
from dynamo_sim.autoscaling.kubernetes.keda.spec import (
    CronTrigger,
    MetricTrigger,
    ResourceTrigger,
    ScaledObjectSpec,
)
from dynamo_sim.autoscaling.metrics.query import MetricQuery

ValueTrigger = MetricTrigger | CronTrigger
"""A trigger with a value; those on resources have none."""

OUTSIDE_CRON = 0.0
"""What a cron trigger reports while its window is closed."""


@dataclass(frozen=True, slots=True)
class Polled:
    """A poll of the operator: whether any trigger is active, whether some failed, and the values by trigger."""

    active: bool
    error: bool
    values: dict[str, float | None]


@dataclass(frozen=True, slots=True)
class _Reading:
    """What became of reading a trigger.

    Attributes:
        milli: what KEDA hands on, in thousandths; None for a trigger that has failed too often and stands for nothing
            in a formula.
        fell_back: whether it is the value of the fallback.
    """

    milli: int | None
    fell_back: bool = False

    @property
    def value(self) -> float | None:
        """In the unit of the trigger."""
        return None if self.milli is None else self.milli / 1000


class Scalers:
    """The triggers of a ScaledObject that have a value, and what the operator and the HPA get of them."""

    def __init__(self, spec: ScaledObjectSpec) -> None:
        self.spec = spec
        self.sources: tuple[ValueTrigger, ...] = tuple(
            trigger for trigger in spec.triggers if not isinstance(trigger, ResourceTrigger)
        )
        self.labels = [source.name or f"trigger {index}" for index, source in enumerate(self.sources)]
        self._metrics = self.hpa_metrics()
        self._cache: dict[int, _Reading | MetricFailed] = {}
        self._failures = [0] * len(self.sources)

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

    # ------------------------------------------------------------ the operator and the HPA

    def poll(self, view: View, now_s: float, current: int, pods: Sequence[Pod]) -> Polled:
        """Read every trigger for the operator, and keep the values for those that are cached.

        A trigger that falls back counts as active. With a formula only the composite counts, and a trigger that fails
        makes the object inactive, whether the formula reads it or not.
        """
        values: dict[str, float | None] = {}
        readings: list[_Reading] = []
        active = error = False
        for index, (source, label) in enumerate(zip(self.sources, self.labels, strict=True)):
            values[label] = None
            raw = self._read(source, view, now_s)
            try:
                reading = self._with_fallback(index, raw, current, pods)
            except MetricFailed as failure:
                self._cache[index] = failure
                error = True
                continue
            self._cache[index] = reading
            readings.append(reading)
            values[label] = reading.value
            active |= reading.fell_back or self._is_active(source, raw, now_s)
        modifiers = self.spec.modifiers
        if modifiers is not None:
            active = False
            try:
                composite = self._composite(readings, values)
            except MetricFailed:
                pass
            else:
                values[modifiers.formula.text] = composite
                active = not error and composite > modifiers.activation
        return Polled(active, error, values)

    def total(self, index: int, current: int, pods: Sequence[Pod], view: View, now_s: float) -> int:
        """The value of the HPA's metric ``index`` in thousandths.

        Raises:
            MetricFailed: it fails, and there is no fallback (yet).
        """
        if self.spec.modifiers is None:
            milli = self._read_for_hpa(index, view, now_s, current, pods).milli
            assert milli is not None, "only in formulas a trigger stands for nothing"
            return max(0, milli)
        values: dict[str, float | None] = {}
        readings: list[_Reading] = []
        failure = None
        for at, label in enumerate(self.labels):
            try:
                reading = self._read_for_hpa(at, view, now_s, current, pods)
            except MetricFailed as error:
                failure = error
            else:
                values[label] = reading.value
                readings.append(reading)
        if failure is not None and not any(reading.fell_back for reading in readings):
            raise failure
        return max(0, _milli(self._composite(readings, values)))

    def _read_for_hpa(
        self, index: int, view: View, now_s: float, current: int, pods: Sequence[Pod]
    ) -> _Reading:
        source = self.sources[index]
        cached = self._cache.get(index) if source.use_cached else None
        if isinstance(cached, _Reading):  # KEDA takes it for a good read, also that of a fallback
            self._failures[index] = 0
            return _Reading(cached.milli)
        raw = self._read(source, view, now_s) if cached is None else cached
        return self._with_fallback(index, raw, current, pods)

    # ------------------------------------------------------------ one trigger

    @staticmethod
    def _read(source: ValueTrigger, view: View, now_s: float) -> float | MetricFailed:
        """What a trigger shows now, or why it fails."""
        if isinstance(source, CronTrigger):
            return float(source.desired) if source.window.is_open(now_s) else OUTSIDE_CRON
        if source.one_series:
            value = view.value(source.query)
        else:
            samples = [sample.value for sample in view.per_worker(source.query).values()]
            if len(samples) > 1:
                return MetricFailed(f"the query gives {len(samples)} series, and KEDA takes only one")
            value = samples[0] if samples else None
        if value is None:
            return 0.0 if source.ignore_null else MetricFailed("no data")
        return value

    @staticmethod
    def _is_active(source: ValueTrigger, raw: float | MetricFailed, now_s: float) -> bool:
        if isinstance(source, CronTrigger):
            return source.window.is_open(now_s)
        return not isinstance(raw, MetricFailed) and raw > source.activation

    def _with_fallback(
        self, index: int, raw: float | MetricFailed, current: int, pods: Sequence[Pod]
    ) -> _Reading:
        """The value, or that of the fallback where the trigger has failed more often in a row than its threshold.

        Raises:
            MetricFailed: it has failed, and there is no fallback (yet).
        """
        if not isinstance(raw, MetricFailed):
            self._failures[index] = 0
            return _Reading(_milli(raw))
        fallback = self.spec.keys.fallback
        if fallback is None or not self.spec.has_valid_fallback:
            raise raw
        self._failures[index] += 1
        failures = self._failures[index]
        if failures <= fallback.failure_threshold:
            raise MetricFailed(
                f"{raw} (failure {failures}; the fallback comes after {fallback.failure_threshold})"
            )
        if fallback.behavior == "scalingModifiers":
            return _Reading(None)
        replicas: float = {
            "static": fallback.replicas,
            "currentReplicas": current,
            "currentReplicasIfHigher": max(current, fallback.replicas),
            "currentReplicasIfLower": min(current, fallback.replicas),
        }[fallback.behavior]
        metric = self._metrics[0 if self.spec.modifiers is not None else index]
        if metric.target_type == "Value":
            ready = sum(pod.is_running_and_ready for pod in pods)
            if ready == 0:
                raise MetricFailed("fallback of a Value target without a ready worker")
            replicas /= ready
        return _Reading(math.trunc(metric.target * replicas), fell_back=True)

    def _composite(self, readings: Sequence[_Reading], values: Mapping[str, float | None]) -> float:
        """The composite metric: of the fallback, if any trigger falls back, else of the formula.

        Raises:
            MetricFailed: the formula fails.
        """
        modifiers, fallback = self.spec.modifiers, self.spec.keys.fallback
        assert modifiers is not None
        for reading in readings:
            if reading.fell_back and reading.value is not None:
                return reading.value
        try:
            value = modifiers.formula(values)
        except (ValueError, KeyError) as error:
            raise MetricFailed(str(error)) from error
        if value is None:
            assert fallback is not None, "only a fallback makes a trigger stand for nothing"
            value = modifiers.target_milli / 1000 * fallback.replicas
        return _milli(value) / 1000


def _milli(value: float) -> int:
    """In thousandths, as KEDA hands metrics on: what is less than a thousandth is cut off."""
    return math.trunc(value * 1000) if math.isfinite(value) else 0
