"""The autoscaler without its process: which loops are due, and what their decisions change (`spec 10, 1`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from dynamo_sim.autoscaling.decision import DecisionRecord
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.guard import Bounds, Guarded
from dynamo_sim.autoscaling.policy import Loop
from dynamo_sim.fleet.fleet import TargetEffect


class FleetHandle(Protocol):
    """What the autoscaler needs of the fleet it belongs to."""

    def fleet_view(self, now_s: float) -> FleetView:
        """The fleet as it is now."""

    def apply_target(self, target: int, now_s: float) -> TargetEffect:
        """Scale to ``target``; only called with one that differs from the effective count."""

    def hold(self, held: bool, now_s: float) -> None:
        """Hold requests in front of the fleet, or let them in again; only called on a change."""


class _Running:
    """A loop and its next evaluation."""

    def __init__(self, loop: Loop, view: Callable[[float], View], guard: Guarded) -> None:
        self.loop = loop
        self.view = view
        self.guard = guard
        self.evaluations = 0
        self.due_s = loop.start_s

    def advance(self, asked_s: float | None) -> None:
        if asked_s is not None:
            self.due_s = asked_s
            return
        now, loop = self.due_s, self.loop
        self.evaluations = max(self.evaluations, math.floor((now - loop.start_s) / loop.period_s) - 1)
        while self.due_s <= now:
            self.evaluations += 1
            self.due_s = self.loop.start_s + self.evaluations * self.loop.period_s


class PolicyRunner:
    """Everything of the autoscaler process but the waiting.

    The process waits until `next_ms`, then calls `run_due` at the end of that instant.

    Args:
        loops: those due together run in the order of their ``order``, then as given.
        views: for each loop the view at a time in seconds.
        bounds: smallest and largest fleet.
        budget: last clamp of a target, or None.
        names: how messages call the policy of each loop; None for the names of the loops.
    """

    def __init__(
        self,
        loops: Sequence[Loop],
        views: Sequence[Callable[[float], View]],
        bounds: Bounds | None = None,
        budget: Callable[[int], int] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        called = [loop.name for loop in loops] if names is None else names
        self._running = [
            _Running(loop, view, Guarded(loop.policy, name, bounds, budget))
            for loop, view, name in zip(loops, views, called, strict=True)
        ]
        self._running.sort(key=lambda running: running.loop.order)
        self._held = False

    @property
    def next_ms(self) -> float:
        """Time of the next evaluation in ms; infinity when there is none."""
        return min((running.due_s * 1000.0 for running in self._running), default=math.inf)

    def request_waits(self, now_ms: float) -> None:
        """A request waits in front of a fleet without workers: a policy may ask to be evaluated earlier for it."""
        for running in self._running:
            asked_s = running.loop.policy.request_waits(now_ms / 1000.0)
            if asked_s is not None:
                running.due_s = min(running.due_s, asked_s)

    def run_due(self, now_ms: float, fleet: FleetHandle) -> list[DecisionRecord]:
        """Evaluate every loop that is due by now, and apply what it decides.

        Raises:
            PolicyError: see `Guarded.decide`.
        """
        records = []
        for running in self._running:
            if running.due_s * 1000.0 <= now_ms:
                now_s = running.due_s
                record = self._evaluate(running, now_s, fleet)
                if record is not None:
                    records.append(record)
        return records

    def _evaluate(self, running: _Running, now_s: float, fleet: FleetHandle) -> DecisionRecord | None:
        before = fleet.fleet_view(now_s)
        decision = running.guard.decide(now_s, running.view(now_s), before)
        running.advance(decision.next_at_s)
        if not running.loop.policy.is_recorded:
            return None
        current = before.effective
        target = current if decision.target is None else decision.target
        effect = fleet.apply_target(target, now_s) if target != current else None
        if decision.hold != self._held:
            self._held = decision.hold
            fleet.hold(decision.hold, now_s)
        return DecisionRecord(
            now_s,
            running.loop.name,
            running.guard.name,
            current,
            target,
            decision.reason,
            decision.desired,
            decision.stabilised,
            decision.values,
            effect,
            decision.hold,
            decision.events,
        )
