"""Alarms and steps, as in step scaling of EC2 Auto Scaling (`spec 10, 0 and 5`)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policies.target_tracking import ALARM_PERIOD_S
from dynamo_sim.autoscaling.policy import Policy
from dynamo_sim.records.readings import Reading, Threshold
from dynamo_sim.scenario.autoscaler.step_scaling import AlarmSpec, StepScaling, StepSpec


def holds(step: StepSpec, distance: float, direction: str) -> bool:
    """Whether a distance from the threshold lies in a step: ``lower <= d < upper`` up, ``lower < d <= upper`` down."""
    lower = -math.inf if step.lower is None else step.lower
    upper = math.inf if step.upper is None else step.upper
    return lower <= distance < upper if direction == "up" else lower < distance <= upper


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


class Alarm:
    """An alarm and what its last evaluations saw."""

    def __init__(self, spec: AlarmSpec) -> None:
        self.spec = spec
        self.query = MetricQuery.of_period(spec)
        self._breached = deque[bool](maxlen=spec.evaluation_periods)
        self._needed = spec.evaluation_periods if spec.datapoints is None else spec.datapoints

    def is_breached(self, value: float | None) -> bool:
        """Whether, with this one, enough of the last values are beyond the threshold; no data is not."""
        spec = self.spec
        beyond = value is not None and (
            value >= spec.threshold if spec.direction == "up" else value <= spec.threshold
        )
        self._breached.append(beyond)
        return value is not None and sum(self._breached) >= self._needed

    def target(self, base: int, value: float) -> int:
        """Capacity the matching step asks for; ``base`` when none matches."""
        spec = self.spec
        for step in spec.steps:
            if holds(step, value - spec.threshold, spec.direction):
                return adjusted(base, step.adjustment, spec.adjustment_type, spec.min_adjustment_magnitude)
        return base


class StepScalingPolicy(Policy):
    """Several alarms on one fleet; the largest of their targets counts, so scale-out goes before scale-in.

    Each evaluation is a datapoint of every alarm. A step is relative to the capacity: the workers that have warmed up.
    Others, which start or warm up, are part of the fleet: the same step again adds nobody, a higher step adds the
    difference, and nothing is scaled in meanwhile.

    Args:
        spec: its keys.
        bounds: smallest and largest fleet; a change that they forbid starts no cooldown.
    """

    period_s = ALARM_PERIOD_S

    def __init__(self, spec: StepScaling, bounds: Bounds | None = None) -> None:
        self.spec = spec
        self.alarms = tuple(Alarm(alarm) for alarm in spec.alarms)
        self.reads = tuple(alarm.query for alarm in self.alarms)
        self.bounds = bounds or Bounds()
        self._in_s = -math.inf

    def readings(self) -> list[Reading]:
        words = {"up": "alarm up from", "down": "alarm down to"}
        return [
            alarm.query.reading(Threshold(alarm.spec.threshold, words[alarm.spec.direction]))
            for alarm in self.alarms
        ]

    def caveats(self, facts: FleetFacts) -> Iterator[str]:
        for alarm in self.alarms:
            top, threshold = facts.ceiling(alarm.query), alarm.spec.threshold
            is_up = alarm.spec.direction == "up" and alarm.query.reduce != "sum"
            if top is not None and is_up and threshold > top:
                yield f"{alarm.query} is never above {top:g}, so the threshold {threshold:g} is never breached"

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        current, capacity = fleet.effective, fleet.warmed_up(now_s, self.spec.warmup_s)
        values: dict[str, float | None] = {}
        asked: dict[str, list[int]] = {"up": [], "down": []}
        for alarm in self.alarms:
            value = values[str(alarm.query)] = view.value(alarm.query)
            if alarm.is_breached(value) and value is not None:
                asked[alarm.spec.direction].append(alarm.target(capacity, value))
        if asked["up"]:
            desired = max(asked["up"])
            target, reason = self._out(desired, current)
        elif asked["down"]:
            desired = max(asked["down"])
            target, reason = self._in(desired, current, capacity, now_s)
        else:
            return Decision(current, "no data" if None in values.values() else "no alarm", values=values)
        return Decision(target, reason, desired, values=values)

    def _out(self, desired: int, current: int) -> tuple[int, str]:
        """Target and reason of the highest step of the alarms up."""
        target = max(current, self.bounds.clamp(desired))
        if target == current:
            return current, "at the largest fleet" if desired > current else "added already"
        self._in_s = -math.inf
        return target, "alarm up"

    def _in(self, desired: int, current: int, capacity: int, now_s: float) -> tuple[int, str]:
        """Target and reason of the smallest step of the alarms down."""
        if capacity < current:
            return current, "warming up"
        target = min(current, self.bounds.clamp(desired))
        if target == current:
            return current, "at the smallest fleet" if desired < current else "no step"
        if now_s < self._in_s + self.spec.scale_in_cooldown_s:
            return current, "scale-in cooldown"
        self._in_s = now_s
        return target, "alarm down"
