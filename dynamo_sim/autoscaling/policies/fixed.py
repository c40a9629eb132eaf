"""The policy that always asks for the same number of workers (`spec 10, 5`)."""

from __future__ import annotations

import math

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.policy import Policy
from dynamo_sim.scenario.autoscaler.fixed import FixedScaling


class FixedPolicy(Policy):
    """Always ``spec.count`` workers, from the start of the run."""

    reads = ()
    first_at_s = 0.0

    def __init__(self, spec: FixedScaling) -> None:
        self.spec = spec

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        return Decision(self.spec.count, "fixed", next_at_s=math.inf)
