"""Alarms and steps as in AWS step scaling (`spec 10, 5`)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.metrics.query import MetricQuery

ADJUSTMENT_TYPES = ("ChangeInCapacity", "ExactCapacity", "PercentChangeInCapacity")


@dataclass(frozen=True, slots=True)
class Step:
    """An adjustment while the metric's distance from the threshold lies between two bounds; None is open."""

    lower: float | None
    upper: float | None
    adjustment: float

    def holds(self, distance: float, direction: str) -> bool:
        """``lower <= d < upper`` on the way up, ``lower < d <= upper`` on the way down."""
        lower = -math.inf if self.lower is None else self.lower
        upper = math.inf if self.upper is None else self.upper
        if direction == "up":
            return lower <= distance < upper
        return lower < distance <= upper


def adjusted(current: int, adjustment: float, adjustment_type: str, min_adjustment_magnitude: int = 0) -> int:
    """Capacity after an adjustment, at least 0.

    A percentage is rounded: above 1 down, between 0 and 1 to 1, between -1 and 0 to -1, below -1 toward 0.
    """
    if adjustment_type == "ExactCapacity":
        return max(0, int(adjustment))
    if adjustment_type == "ChangeInCapacity":
        return max(0, current + int(adjustment))
    exact = current * adjustment / 100
    change = math.trunc(exact)
    if change == 0 and exact != 0:
        change = 1 if exact > 0 else -1
    if change:
        change = int(math.copysign(max(abs(change), min_adjustment_magnitude), change))
    return max(0, current + change)


@dataclass(frozen=True)
class StepAlarm:
    """An alarm with its steps.

    Attributes:
        query: the metric; one mean of it is taken at each look.
        threshold: breached at or above it (``up``), at or below it (``down``).
        direction: ``up`` or ``down``.
        steps: by the distance from the threshold.
        adjustment_type: one of `ADJUSTMENT_TYPES`.
        min_adjustment_magnitude: least change of a percentage.
        evaluation_periods, datapoints: ``datapoints`` of the last ``evaluation_periods`` means must breach; no data
            does not breach. None stands for all of them.
    """

    query: MetricQuery
    threshold: float
    direction: str
    steps: tuple[Step, ...]
    adjustment_type: str = "ChangeInCapacity"
    min_adjustment_magnitude: int = 0
    evaluation_periods: int = 1
    datapoints: int | None = None

    def __post_init__(self) -> None:
        if self.direction not in ("up", "down"):
            raise ValueError(f"direction is up or down, got {self.direction!r}")
        if self.adjustment_type not in ADJUSTMENT_TYPES:
            raise ValueError(
                f"adjustment_type is one of {', '.join(ADJUSTMENT_TYPES)}, got {self.adjustment_type!r}"
            )
        needed = self.evaluation_periods if self.datapoints is None else self.datapoints
        if not 1 <= needed <= self.evaluation_periods:
            raise ValueError(
                f"datapoints is from 1 to evaluation_periods ({self.evaluation_periods}), got {needed}"
            )

    def breaches(self, value: float | None) -> bool:
        """Whether one mean is beyond the threshold."""
        if value is None:
            return False
        return value >= self.threshold if self.direction == "up" else value <= self.threshold

    def target(self, base: int, value: float) -> int:
        """Capacity the matching step asks for; ``base`` when none matches."""
        for step in self.steps:
            if step.holds(value - self.threshold, self.direction):
                return adjusted(base, step.adjustment, self.adjustment_type, self.min_adjustment_magnitude)
        return base


class StepScalingPolicy:
    """Several alarms on one fleet; the largest wish wins, so scale-out goes before scale-in.

    While workers added by a step warm up, they count as already added: a higher step adds the difference only, and
    nothing is scaled in.

    Args:
        alarms: at least one.
        warmup_s: how long after a step its workers warm up.
        bounds: smallest and largest fleet.
    """

    def __init__(
        self, alarms: Sequence[StepAlarm], warmup_s: float = 0.0, bounds: Bounds | None = None
    ) -> None:
        self.alarms = tuple(alarms)
        self.reads = tuple(alarm.query for alarm in alarms)
        self.warmup_s = warmup_s
        self.bounds = bounds or Bounds()
        self._seen = [deque[bool](maxlen=alarm.evaluation_periods) for alarm in alarms]
        self._base = 0
        self._warm_at_s = -math.inf

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        current = fleet.effective
        warming = now_s < self._warm_at_s
        base = min(self._base, current) if warming else current
        values: dict[str, float | None] = {}
        wishes = []
        for alarm, seen in zip(self.alarms, self._seen, strict=True):
            value = view.value(alarm.query)
            values[str(alarm.query)] = value
            seen.append(alarm.breaches(value))
            needed = alarm.evaluation_periods if alarm.datapoints is None else alarm.datapoints
            if value is not None and sum(seen) >= needed:
                wishes.append((self.bounds.clamp(alarm.target(base, value)), alarm))
        ups = [wish for wish, alarm in wishes if alarm.direction == "up"]
        if ups:
            target = max(ups)
            if target > current:
                self._base, self._warm_at_s = base, now_s + self.warmup_s
                return Decision(target, "alarm up", target, values=values)
            return Decision(current, "warming up" if warming else "alarm up", target, values=values)
        downs = [wish for wish, alarm in wishes if alarm.direction == "down"]
        if downs:
            target = max(downs)
            if warming:
                return Decision(current, "warming up", target, values=values)
            return Decision(min(target, current), "alarm down", target, values=values)
        return Decision(current, "no alarm", values=values)
