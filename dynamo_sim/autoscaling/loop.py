"""Loops: who looks when, and the pure core of the autoscaler process (`spec 10, 1`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dynamo_sim.autoscaling.decision import DecisionRecord, Policy
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.guard import SHORTEST_PERIOD_S, Bounds, Guarded, is_number
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.shown import shown

KEDA_OPERATOR, HPA, KNATIVE, ANY = range(4)
"""Order of loops that are due together."""


@dataclass(frozen=True)
class Loop:
    """One policy and when it looks (times in seconds).

    Looks happen at ``first_at_s + k * period_s``, computed from k, never added up; a decision may name another time.

    Attributes:
        name: for the records.
        policy: who decides.
        period_s: seconds between looks.
        first_at_s: the first look; None for one period.
        order: place among loops due at the same time.
    """

    name: str
    policy: Policy
    period_s: float
    first_at_s: float | None = None
    order: int = ANY

    def __post_init__(self) -> None:
        if not _is_at_least(self.period_s, SHORTEST_PERIOD_S):
            raise ValueError(
                f"period_s: a period is longer than 0 s (at least {SHORTEST_PERIOD_S:g} s), got {shown(self.period_s)}"
            )
        if self.first_at_s is not None and not _is_at_least(self.first_at_s, 0.0):
            raise ValueError(f"first_at_s: the first look is at 0 s or later, got {shown(self.first_at_s)}")
        if not isinstance(self.order, int):
            raise ValueError(f"order: is a whole number, got {shown(self.order)}")

    @property
    def start_s(self) -> float:
        """Time of the first look."""
        return self.period_s if self.first_at_s is None else self.first_at_s


def loops_of(policy: Any, name: str, period_s: float = 15.0, first_at_s: float | None = None) -> list[Loop]:
    """The loops of a policy, in the order in which they run when they are due together.

    Args:
        policy: any policy; one with ``loops`` brings its own.
        name: of the loop, when there is one.
        period_s, first_at_s: for a policy that does not say ``period_s`` or ``first_at_s`` itself.

    Raises:
        ValueError: what the policy says of its looks makes no sense.
    """
    own = getattr(policy, "loops", None)
    if own is not None:
        if not isinstance(own, list | tuple) or not all(isinstance(loop, Loop) for loop in own):
            raise ValueError(f"loops: is a list of Loop objects, got {shown(own)}")
        if not own:
            raise ValueError("loops: is empty, so nobody would ever look")
        return sorted(own, key=lambda loop: loop.order)
    period = getattr(policy, "period_s", None)
    first = getattr(policy, "first_at_s", None)
    return [
        Loop(
            name,
            policy,
            period_s if period is None else period,
            first_at_s if first is None else first,
            getattr(policy, "order", ANY),
        )
    ]


def reads_of(policy: Any) -> tuple[MetricQuery, ...] | None:
    """The queries a policy asks for; None for "anything".

    Raises:
        ValueError: they are no list of queries and names of metrics.
    """
    reads = getattr(policy, "reads", None)
    if reads is None:
        return None
    if isinstance(reads, str):
        raise ValueError(f"reads: is a list of metrics, got {shown(reads)}; write ({shown(reads)},)")
    if not isinstance(reads, list | tuple | set | frozenset):
        raise ValueError(f"reads: is a list of metrics, got {shown(reads)}")
    for query in reads:
        if not isinstance(query, MetricQuery | str):
            raise ValueError(f"reads: has names of metrics and MetricQuery objects only, got {shown(query)}")
    try:
        return tuple(MetricQuery.of(query) for query in reads)
    except ValueError as error:
        raise ValueError(f"reads: {error}") from None


def _is_at_least(value: Any, least: float) -> bool:
    """Whether it is a number from ``least`` that times can be reckoned with."""
    try:
        return is_number(value) and float(value) >= least
    except OverflowError:
        return False


@dataclass(frozen=True, slots=True)
class Applied:
    """What a target changed: ids added, cancelled (startups called off), marked (told to leave)."""

    added: tuple[int, ...] = ()
    cancelled: tuple[int, ...] = ()
    marked: tuple[int, ...] = ()


class FleetHandle(Protocol):
    """What the autoscaler needs of the fleet it belongs to."""

    def fleet_view(self, now_s: float) -> FleetView:
        """The fleet as it is now."""

    def apply_target(self, target: int, now_s: float) -> Applied:
        """Scale to ``target``; only called with one that differs from the effective count."""

    def hold(self, held: bool, now_s: float) -> None:
        """Hold requests in front of the fleet, or let them in again; only called on a change."""


class _Running:
    """A loop and its next look."""

    def __init__(self, loop: Loop, view: Callable[[float], View], guard: Guarded) -> None:
        self.loop = loop
        self.view = view
        self.guard = guard
        self.look = 0
        self.due_s = loop.start_s

    def advance(self, asked_s: float | None) -> None:
        if asked_s is not None:
            self.due_s = asked_s
            return
        now = self.due_s
        while self.due_s <= now:
            self.look += 1
            self.due_s = self.loop.start_s + self.look * self.loop.period_s


class Autoscaler:
    """Everything of the autoscaler process but the waiting.

    The process waits until `next_ms`, then calls `run_due` at the end of that instant.

    Args:
        loops: who looks; those due together run in the order of their ``order``, then as given.
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
        """Time of the next look in ms; infinity when there is none."""
        return min((running.due_s * 1000.0 for running in self._running), default=math.inf)

    def run_due(self, now_ms: float, fleet: FleetHandle) -> list[DecisionRecord]:
        """Let every loop look that is due by now, and apply what it decides.

        Raises:
            PolicyError: see `Guarded.decide`.
        """
        records = []
        for running in self._running:
            if running.due_s * 1000.0 <= now_ms:
                now_s = running.due_s
                record = self._look(running, now_s, fleet)
                if record is not None:
                    records.append(record)
        return records

    def _look(self, running: _Running, now_s: float, fleet: FleetHandle) -> DecisionRecord | None:
        before = fleet.fleet_view(now_s)
        decision = running.guard.decide(now_s, running.view(now_s), before)
        running.advance(decision.next_at_s)
        if getattr(running.loop.policy, "silent", False):
            return None
        current = before.effective
        target = current if decision.target is None else decision.target
        applied = fleet.apply_target(target, now_s) if target != current else Applied()
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
            decision.proposal,
            decision.stabilised,
            decision.values,
            applied.added,
            applied.cancelled,
            applied.marked,
            decision.hold,
            decision.events,
        )
