"""As many workers as the queue needs (`spec 10, 5`)."""

from __future__ import annotations

import math
from collections import deque

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.metrics.query import MetricQuery

_ROUTER = MetricQuery("router_queue")
_WAITING = MetricQuery("waiting", reduce="sum")
_RUNNING = MetricQuery("running", reduce="sum")


class QueueProportionalPolicy:
    """``ceil((queued + running * include_in_flight) / per_worker) + slack`` workers.

    Queued is what waits in front of the fleet and in the workers' queues. Up at once; down only to what every wish of
    the last ``hold_s`` allows.

    Args:
        per_worker: requests one worker is to have.
        include_in_flight: weight of running requests, from 0 to 1 (False and True will do).
        slack: workers on top.
        hold_s: how long a smaller wish must have held.
        bounds: smallest and largest fleet.
    """

    def __init__(
        self,
        per_worker: float,
        include_in_flight: float = 0.0,
        slack: int = 0,
        hold_s: float = 0.0,
        bounds: Bounds | None = None,
    ) -> None:
        if not per_worker > 0:
            raise ValueError(f"per_worker is above 0, got {per_worker!r}")
        self.per_worker = per_worker
        self.include_in_flight = float(include_in_flight)
        self.slack = slack
        self.hold_s = hold_s
        self.bounds = bounds or Bounds()
        self.reads = (_ROUTER, _WAITING, _RUNNING) if self.include_in_flight else (_ROUTER, _WAITING)
        self._below: deque[tuple[float, int]] = deque()
        self._below_since_s = math.inf

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        parts = {
            "router_queue": view.value(_ROUTER),
            "waiting": view.value(_WAITING),
            "running": view.value(_RUNNING) if self.include_in_flight else None,
        }
        if all(value is None for value in parts.values()):
            return Decision(None, "no data", values=parts)
        queued = (parts["router_queue"] or 0.0) + (parts["waiting"] or 0.0)
        load = queued + (parts["running"] or 0.0) * self.include_in_flight
        wish = self.bounds.clamp(math.ceil(load / self.per_worker) + self.slack)
        current = fleet.effective
        if wish >= current:
            self._below.clear()
            self._below_since_s = math.inf
            return Decision(wish, "queue" if wish > current else "enough", wish, wish, parts)
        self._below_since_s = min(self._below_since_s, now_s)
        self._below.append((now_s, wish))
        while self._below[0][0] < now_s - self.hold_s:
            self._below.popleft()
        if now_s - self._below_since_s < self.hold_s:
            return Decision(current, "holding", wish, current, parts)
        held = max(smaller for _, smaller in self._below)
        return Decision(held, "queue shrank", wish, held, parts)
