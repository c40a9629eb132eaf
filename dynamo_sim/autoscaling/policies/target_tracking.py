"""Keep a metric at a target, with a margin and cooldowns (`spec 10, 5`)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policy import Policy
from dynamo_sim.metrics.readings import Reading, Threshold
from dynamo_sim.scenario.scaling_policies import TargetTrackingScaling


def tracked_target(
    current: int, value: float, target: float, margin: float = 0.1, kind: str = "average"
) -> int:
    """The fleet for which the metric would be at its target (`spec 10, 5`).

    Args:
        current: effective workers.
        value: of the metric: a mean over the workers (``average``) or a sum of all of them (``total``).
        target: for one worker.
        margin: how far, as a share of the target, the value for one worker may lie below it without a scale-in.
    """
    total = value * current if kind == "average" else value
    wish = math.ceil(current * value / target) if kind == "average" else math.ceil(value / target)
    if total > target * current:
        return wish
    if total < target * (1 - margin) * current:
        return min(wish, current)
    return current


class TargetTrackingPolicy(Policy):
    """Target tracking.

    A cooldown counts from the last change in its direction; a scale-in also waits its cooldown after a scale-out, a
    scale-out is never delayed by a scale-in.

    Args:
        spec: its keys.
        bounds: smallest and largest fleet; a change that they forbid starts no cooldown.
    """

    def __init__(self, spec: TargetTrackingScaling, bounds: Bounds | None = None) -> None:
        self.spec = spec
        self.query = MetricQuery.of_fleet(spec) if spec.target_kind == "total" else MetricQuery.of(spec)
        self.reads = (self.query,)
        self.bounds = bounds or Bounds()
        self._out_s = -math.inf
        self._in_s = -math.inf

    def readings(self) -> list[Reading]:
        return [self.query.reading(Threshold(self.spec.target, per_worker=self.spec.target_kind == "total"))]

    def caveats(self, facts: FleetFacts) -> Iterator[str]:
        top, target = facts.ceiling(self.query), self.spec.target
        if top is not None and self.spec.target_kind == "average" and target >= top:
            yield f"{self.query} is never above {top:g}, so the target {target:g} never adds a worker"

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        value = view.value(self.query)
        values: dict[str, float | None] = {str(self.query): value, "target": self.spec.target}
        if value is None:
            return Decision(None, "no data", values=values)
        current = fleet.effective
        proposal = tracked_target(current, value, self.spec.target, self.spec.margin, self.spec.target_kind)
        target = self.bounds.clamp(proposal)
        reason = "on target"
        if target > current:
            reason = "scale out"
            if now_s < self._out_s + self.spec.scale_out_cooldown_s:
                target, reason = current, "scale-out cooldown"
            else:
                self._out_s = now_s
        elif target < current:
            reason = "scale in"
            if now_s < max(self._in_s, self._out_s) + self.spec.scale_in_cooldown_s:
                target, reason = current, "scale-in cooldown"
            else:
                self._in_s = now_s
        return Decision(target, reason, proposal, values=values)
