"""Targets by the clock (`spec 10, 5`)."""

from __future__ import annotations

import math

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.policy import Policy
from dynamo_sim.cron import CronWindow, parse_start
from dynamo_sim.scenario.autoscaler.schedule import ScheduleScaling


class SchedulePolicy(Policy):
    """Steps at given times, cron windows, or both.

    A step holds until the next step. Where a step and open windows overlap, the largest target counts; where there is
    neither, ``default``. Every change is applied exactly at its time.
    """

    reads = ()
    first_at_s = 0.0
    min_wait_s = 0.0  # its times are a list, which ends

    def __init__(self, spec: ScheduleScaling) -> None:
        start = parse_start(spec.start_of_run)
        self.spec = spec
        self._steps = sorted((step.t / 1000.0, step.target) for step in spec.at_ms)
        self._windows = [
            (CronWindow(entry.start, entry.end, entry.timezone, start), entry.target) for entry in spec.cron
        ]

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        desired = [(target, "cron") for window, target in self._windows if window.is_open(now_s)]
        past = [target for at_s, target in self._steps if at_s <= now_s]
        if past:
            desired.append((past[-1], "schedule"))
        edges = [at_s for at_s, _ in self._steps if at_s > now_s]
        edges += [edge for window, _ in self._windows if (edge := window.next_edge_s(now_s)) is not None]
        target, reason = max(desired, default=(self.spec.default, "default"))
        return Decision(target, reason, next_at_s=min(edges, default=math.inf))
