"""Targets by the clock (`spec 10, 5`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.cron import CronWindow


@dataclass(frozen=True, slots=True)
class CronTarget:
    """A target while a cron window is open."""

    window: CronWindow
    target: int


class SchedulePolicy:
    """Steps at given times, cron windows, or both.

    A step holds until the next step. Where a step and open windows overlap, the largest target counts; where there is
    neither, ``default``. Every change is applied exactly at its time.

    Args:
        at_ms: (time in ms, target), any order; of several at one time the last one counts.
        cron: targets by cron window.
        default: target outside of everything; None for no change.
    """

    reads = ()
    first_at_s = 0.0
    shortest_wait_s = 0.0  # its times are a list, which ends

    def __init__(
        self,
        at_ms: Sequence[tuple[float, int]] = (),
        cron: Sequence[CronTarget] = (),
        default: int | None = None,
    ) -> None:
        steps = dict(at_ms)
        self._times_s = [at / 1000.0 for at in sorted(steps)]
        self._targets = [steps[at] for at in sorted(steps)]
        self._cron = tuple(cron)
        self.default = default

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        wanted = [(entry.target, "cron") for entry in self._cron if entry.window.is_open(now_s)]
        past = [target for at, target in zip(self._times_s, self._targets, strict=True) if at <= now_s]
        if past:
            wanted.append((past[-1], "schedule"))
        edges = [at for at in self._times_s if at > now_s]
        edges += [edge for entry in self._cron if (edge := entry.window.next_edge_s(now_s)) is not None]
        target, reason = max(wanted, default=(self.default, "default"))
        return Decision(target, reason, next_at_s=min(edges, default=math.inf))
