"""The policy that never changes its mind (`spec 10, 5`)."""

from __future__ import annotations

import math

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_view import FleetView, View


class FixedPolicy:
    """Always ``count`` workers, from the start of the run."""

    reads = ()
    first_at_s = 0.0

    def __init__(self, count: int) -> None:
        self.count = count

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        return Decision(self.count, "fixed", next_at_s=math.inf)
