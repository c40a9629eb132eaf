"""Keep a metric at a target, with a margin and cooldowns (`spec 10, 5`)."""

from __future__ import annotations

import math

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.metrics.query import MetricQuery

KINDS = ("average", "total")


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


class TargetTrackingPolicy:
    """Target tracking.

    A cooldown counts from the last change in its direction; a scale-in also waits its cooldown after a scale-out, a
    scale-out is never delayed by a scale-in.

    Args:
        query: the metric.
        target: of the metric for one worker, above 0.
        kind: ``average`` (of the workers) or ``total``.
        margin: see `tracked_target`.
        scale_out_cooldown_s, scale_in_cooldown_s: least time between changes.
        bounds: smallest and largest fleet; a wish that they forbid starts no cooldown.
    """

    def __init__(
        self,
        query: MetricQuery,
        target: float,
        kind: str = "average",
        margin: float = 0.1,
        scale_out_cooldown_s: float = 0.0,
        scale_in_cooldown_s: float = 300.0,
        bounds: Bounds | None = None,
    ) -> None:
        if not target > 0:
            raise ValueError(f"a target is above 0, got {target!r}")
        if kind not in KINDS:
            raise ValueError(f"kind is average or total, got {kind!r}")
        self.query = query
        self.reads = (query,)
        self.target = target
        self.kind = kind
        self.margin = margin
        self.scale_out_cooldown_s = scale_out_cooldown_s
        self.scale_in_cooldown_s = scale_in_cooldown_s
        self.bounds = bounds or Bounds()
        self._out_s = -math.inf
        self._in_s = -math.inf

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        value = view.value(self.query)
        values: dict[str, float | None] = {str(self.query): value, "target": self.target}
        if value is None:
            return Decision(None, "no data", values=values)
        current = fleet.effective
        proposal = tracked_target(current, value, self.target, self.margin, self.kind)
        target = self.bounds.clamp(proposal)
        reason = "on target"
        if target > current:
            reason = "scale out"
            if now_s < self._out_s + self.scale_out_cooldown_s:
                target, reason = current, "scale-out cooldown"
            else:
                self._out_s = now_s
        elif target < current:
            reason = "scale in"
            if now_s < max(self._in_s, self._out_s) + self.scale_in_cooldown_s:
                target, reason = current, "scale-in cooldown"
            else:
                self._in_s = now_s
        return Decision(target, reason, proposal, values=values)
