"""As many workers as a total of the fleet needs (`spec 10, 0 and 5`)."""

from __future__ import annotations

import math
from collections import deque

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policy import Policy
from dynamo_sim.records.readings import Reading, Threshold
from dynamo_sim.scenario.autoscaler.proportional import ProportionalScaling


class HeldScaleIn:
    """Up at once; down only to the largest fleet that was desired in all of the last ``hold_s``."""

    def __init__(self, hold_s: float, bounds: Bounds) -> None:
        self.hold_s = hold_s
        self.bounds = bounds
        self._smaller: deque[tuple[float, int]] = deque()
        self._since_s = math.inf

    def decision(self, now_s: float, desired: int, current: int, values: dict[str, float | None]) -> Decision:
        """What comes of a desired fleet.

        Args:
            now_s: time of the evaluation.
            desired: before the bounds.
            current: effective workers.
            values: what was read.
        """
        allowed = self.bounds.clamp(desired)
        if allowed >= current:
            self._smaller.clear()
            self._since_s = math.inf
            return Decision(allowed, _reason_up(desired, allowed, current), desired, allowed, values)
        self._since_s = min(self._since_s, now_s)
        self._smaller.append((now_s, allowed))
        while self._smaller[0][0] < now_s - self.hold_s:
            self._smaller.popleft()
        if now_s - self._since_s < self.hold_s:
            return Decision(current, "holding", desired, current, values)
        held = max(smaller for _, smaller in self._smaller)
        return Decision(held, "scale in", desired, held, values)


def _reason_up(desired: int, allowed: int, current: int) -> str:
    if allowed < desired:
        return "at the largest fleet"
    if allowed > desired:
        return "at the smallest fleet"
    return "scale out" if allowed > current else "enough"


class ProportionalPolicy(Policy):
    """``ceil(total / per_worker) + slack`` workers: what ready workers have, divided by what one is to have.

    Args:
        spec: its keys.
        bounds: smallest and largest fleet.
    """

    def __init__(self, spec: ProportionalScaling, bounds: Bounds | None = None) -> None:
        self.spec = spec
        self.query = MetricQuery.of_fleet(spec)
        self.reads = (self.query,)
        self._held = HeldScaleIn(spec.hold_s, bounds or Bounds())

    def readings(self) -> list[Reading]:
        return [self.query.reading(Threshold(self.spec.per_worker, per_worker=True))]

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        value = view.value(self.query)
        values = {str(self.query): value}
        if value is None:
            return Decision(None, "no data", values=values)
        desired = max(0, math.ceil(value / self.spec.per_worker)) + self.spec.slack
        return self._held.decision(now_s, desired, fleet.effective, values)
