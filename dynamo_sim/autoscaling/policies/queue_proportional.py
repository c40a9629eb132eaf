"""As many workers as the queue needs (`spec 10, 5`)."""

from __future__ import annotations

import math

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policies.proportional import HeldScaleIn
from dynamo_sim.autoscaling.policy import Policy
from dynamo_sim.records.readings import Reading, Threshold
from dynamo_sim.scenario.autoscaler.queue_proportional import QueueProportionalScaling

_ROUTER = MetricQuery("router_queue")
_WAITING = MetricQuery("waiting", reduce="sum")
_RUNNING = MetricQuery("running", reduce="sum")


class QueueProportionalPolicy(Policy):
    """``ceil((queued + running * include_in_flight) / per_worker) + slack`` workers.

    Queued is what waits in front of the fleet and in the workers' queues. Up at once; down as `HeldScaleIn` allows.

    Args:
        spec: its keys.
        bounds: smallest and largest fleet.
    """

    def __init__(self, spec: QueueProportionalScaling, bounds: Bounds | None = None) -> None:
        self.spec = spec
        self.reads = (_ROUTER, _WAITING, *((_RUNNING,) if spec.include_in_flight else ()))
        self._held = HeldScaleIn(spec.hold_s, bounds or Bounds())

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
        desired = math.ceil(load / self.spec.per_worker) + self.spec.slack
        return self._held.decision(now_s, desired, fleet.effective, parts)
