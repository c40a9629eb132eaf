"""As many workers as the queue needs (`spec 10, 5`)."""

from __future__ import annotations

import math
from collections import deque

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policy import Policy
from dynamo_sim.metrics.readings import Reading, Threshold
from dynamo_sim.scenario.scaling_policies import QueueProportionalScaling

_ROUTER = MetricQuery("router_queue")
_WAITING = MetricQuery("waiting", reduce="sum")
_RUNNING = MetricQuery("running", reduce="sum")


class QueueProportionalPolicy(Policy):
    """``ceil((queued + running * include_in_flight) / per_worker) + slack`` workers.

    Queued is what waits in front of the fleet and in the workers' queues. Up at once; down only to what was desired
    at most in all of the last ``hold_s``.

    Args:
        spec: its keys.
        bounds: smallest and largest fleet.
    """

    def __init__(self, spec: QueueProportionalScaling, bounds: Bounds | None = None) -> None:
        self.spec = spec
        self.bounds = bounds or Bounds()
        self.reads = (_ROUTER, _WAITING, *((_RUNNING,) if spec.include_in_flight else ()))
        self._below: deque[tuple[float, int]] = deque()
        self._below_since_s = math.inf

    def readings(self) -> list[Reading]:
        limit = Threshold(self.spec.per_worker, "all of it", per_worker=True)
        return [Reading(query.metric, "requests in total", (limit,)) for query in self.queries or ()]

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        parts = {
            "router_queue": view.value(_ROUTER),
            "waiting": view.value(_WAITING),
            "running": view.value(_RUNNING) if self.spec.include_in_flight else None,
        }
        if all(value is None for value in parts.values()):
            return Decision(None, "no data", values=parts)
        queued = (parts["router_queue"] or 0.0) + (parts["waiting"] or 0.0)
        load = queued + (parts["running"] or 0.0) * self.spec.include_in_flight
        wish = self.bounds.clamp(math.ceil(load / self.spec.per_worker) + self.spec.slack)
        current = fleet.effective
        if wish >= current:
            self._below.clear()
            self._below_since_s = math.inf
            return Decision(wish, "queue" if wish > current else "enough", wish, wish, parts)
        self._below_since_s = min(self._below_since_s, now_s)
        self._below.append((now_s, wish))
        while self._below[0][0] < now_s - self.spec.hold_s:
            self._below.popleft()
        if now_s - self._below_since_s < self.spec.hold_s:
            return Decision(current, "holding", wish, current, parts)
        held = max(smaller for _, smaller in self._below)
        return Decision(held, "queue shrank", wish, held, parts)
