"""Keep a metric at a target by alarms and cooldowns, as Application Auto Scaling of AWS does (`spec 10, 0 and 5`)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policy import Policy
from dynamo_sim.records.readings import Reading, Threshold
from dynamo_sim.scenario.autoscaler.target_tracking import TargetTrackingScaling

ALARM_PERIOD_S = 60.0
"""Seconds of a datapoint of an alarm, and so between two evaluations."""


def workers_for(value: float, target: float, capacity: int, kind: str = "average") -> int:
    """The fleet for which a metric would be at its target (`spec 10, 5`).

    Args:
        value: of the metric: a mean over the workers (``average``) or a sum of all of them (``total``).
        target: for one worker.
        capacity: workers that have warmed up.
        kind: of the value.
    """
    return math.ceil(value / target if kind == "total" else capacity * value / target)


class TargetTrackingPolicy(Policy):
    """Two alarms on one metric: above the target, and below the target by a margin.

    Each evaluation is a datapoint of both. After enough datapoints in a row an alarm changes the fleet, at every
    evaluation for as long as it lasts:

    * up to what `workers_for` says of the workers that have warmed up. Workers that start or warm up are no capacity
      yet, but they are part of the fleet, so the same overload is not answered twice. During the cooldown of a
      scale-out only a larger fleet than that one asked for is asked for.
    * down likewise, when no worker warms up and its cooldown is over. It counts from the last change; a scale-out never
      waits for it.

    An evaluation without data is no datapoint.

    Args:
        spec: its keys.
        bounds: smallest and largest fleet; a change that they forbid starts no cooldown.
    """

    period_s = ALARM_PERIOD_S

    def __init__(self, spec: TargetTrackingScaling, bounds: Bounds | None = None) -> None:
        self.spec = spec
        self.query = MetricQuery.of_period(spec, is_total=spec.target_kind == "total")
        self.reads = (self.query,)
        self.bounds = bounds or Bounds()
        self._above = self._below = 0  # datapoints in a row
        self._out_s = self._in_s = -math.inf
        self._out_target = 0

    def readings(self) -> list[Reading]:
        return [self.query.reading(Threshold(self.spec.target, per_worker=self.spec.target_kind == "total"))]

    def caveats(self, facts: FleetFacts) -> Iterator[str]:
        top, target = facts.ceiling(self.query), self.spec.target
        if top is not None and self.spec.target_kind == "average" and target >= top:
            yield f"{self.query} is never above {top:g}, so the target {target:g} never adds a worker"

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        spec, current = self.spec, fleet.effective
        value = view.value(self.query)
        values: dict[str, float | None] = {str(self.query): value, "target": spec.target}
        if value is None:
            return Decision(None, "no data", values=values)
        capacity = fleet.warmed_up(now_s, spec.warmup_s)
        desired = workers_for(value, spec.target, capacity, spec.target_kind)
        carried = spec.target * (fleet.active if spec.target_kind == "total" else 1)
        self._above = self._above + 1 if value > carried else 0
        self._below = self._below + 1 if value < carried * (1 - spec.margin) else 0
        if self._above:
            target, reason = self._out(desired, current, now_s)
        elif self._below:
            target, reason = self._in(desired, current, capacity < fleet.active, now_s)
        else:
            target, reason = current, "on target"
        return Decision(target, reason, desired, values=values)

    def _out(self, desired: int, current: int, now_s: float) -> tuple[int, str]:
        """Target and reason while the metric is above its target."""
        if self._above < self.spec.scale_out_periods:
            return current, f"above target in {self._above} of {self.spec.scale_out_periods} periods"
        target = max(current, self.bounds.clamp(desired))
        if target == current:
            return current, "at the largest fleet" if desired > current else "added already"
        if now_s < self._out_s + self.spec.scale_out_cooldown_s and target <= self._out_target:
            return current, "scale-out cooldown"
        self._out_s, self._out_target = now_s, target
        return target, "scale out"

    def _in(self, desired: int, current: int, is_warming: bool, now_s: float) -> tuple[int, str]:
        """Target and reason while the metric is below its target by more than the margin."""
        if self._below < self.spec.scale_in_periods:
            return current, f"below target in {self._below} of {self.spec.scale_in_periods} periods"
        target = min(current, self.bounds.clamp(desired))
        if target == current:
            reason = "at the smallest fleet" if desired < current else "one worker less would be too few"
            return current, reason
        if is_warming:  # the metric counts them already, the capacity does not
            return current, "warming up"
        if now_s < max(self._in_s, self._out_s) + self.spec.scale_in_cooldown_s:
            return current, "scale-in cooldown"
        self._in_s = now_s
        self._out_s = -math.inf  # what the last scale-out asked for does not count any more
        return target, "scale in"
