"""Who decides about the size of the fleet while it serves."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dynamo_sim.errors import ScenarioError, SimulationError
from dynamo_sim.metrics.readings import Reading
from dynamo_sim.shown import shown
from dynamo_sim.sizes import MOST_WORKERS


@dataclass(frozen=True, slots=True)
class TargetEffect:
    """What a target did: ids added, cancelled (startups called off), marked (told to leave)."""

    added: tuple[int, ...]
    cancelled: tuple[int, ...]
    marked: tuple[int, ...]


class ControlledFleet(Protocol):
    """What a controller can do with the fleet while it is asked."""

    def metrics(self) -> dict[str, Any]:
        """What the fleet shows a planner now (`spec 01, 11`); empties the buffers."""

    def apply_target(self, target: int) -> TargetEffect:
        """Scale to ``target`` workers."""


class Controller(Protocol):
    """Decides about the size of the fleet, at times it chooses itself (`spec 01, 10`)."""

    wants_passes: bool
    """Whether the fleet's metrics must carry forward-pass snapshots and traffic."""
    waits_for_workers: bool
    """Whether requests wait in front of a fleet without active workers; otherwise they are an error."""

    reads_as_reference: bool
    """Whether workloads are read as the reference reads them for a planner (`spec 08, 2`: path H)."""
    warnings: list[str]
    """What has to be said about it in the results."""

    def attach(self, serving: Any) -> None:
        """Meet the serving whose fleet it controls, before anything is served."""

    def decision_rows(self) -> list[dict[str, Any]]:
        """One row an evaluation, for the results."""

    def readings(self) -> list[Reading]:
        """Units and thresholds of the values in the rows."""

    def notes(self, end_ms: float) -> list[str]:
        """What there is to say after a run that ended then."""

    def first_tick_ms(self) -> float | None:
        """The first time to be asked; None, infinity or NaN for never."""

    def on_tick(self, now_ms: float, fleet: ControlledFleet) -> float | None:
        """Look, and act; the answer is the next time to be asked, None for never again."""

    def request_waits(self, now_ms: float) -> float | None:
        """A request waits in front of a fleet without workers: the next time to be asked, None for as before."""


class PlainController:
    """A controller that keeps no books."""

    waits_for_workers = False
    reads_as_reference = True
    warnings: list[str] = []  # noqa: RUF012 - never written to

    def attach(self, serving: Any) -> None:
        """Needs nothing of the serving."""

    def request_waits(self, now_ms: float) -> float | None:
        """Is not asked earlier for it."""
        return None

    def decision_rows(self) -> list[dict[str, Any]]:
        """None."""
        return []

    def readings(self) -> list[Reading]:
        """None."""
        return []

    def notes(self, end_ms: float) -> list[str]:
        """Nothing."""
        return []


class ScriptedTargets(PlainController):
    """Applies targets at given times.

    Args:
        plan: (time in ms, target count or None for a mere look), any order; of several targets at one time the
            last one counts.
    """

    wants_passes = False

    def __init__(self, plan: list[tuple[float, int | None]]) -> None:
        self._targets: dict[float, int | None] = {}
        for at_ms, target in plan:
            if target is not None or at_ms not in self._targets:
                self._targets[at_ms] = target
        self._times = sorted(self._targets)
        self._next = 0

    def first_tick_ms(self) -> float | None:
        return self._times[0] if self._times else None

    def on_tick(self, now_ms: float, fleet: ControlledFleet) -> float | None:
        target = self._targets[self._times[self._next]]
        if target is not None:
            fleet.apply_target(target)
        self._next += 1
        return self._times[self._next] if self._next < len(self._times) else None


class Planner(Protocol):
    """What a planner object has to offer to be driven by the fleet."""

    def initial_tick_ms(self) -> float:
        """The time of the first tick in ms."""

    def on_tick(self, metrics: dict[str, Any]) -> dict[str, Any]:
        """The answer to a tick: ``target_prefill``, ``target_decode``, ``next_tick_ms`` (all keys, None allowed)."""


class PlannerController(PlainController):
    """Drives any `Planner` with the keys, types and timing of the reference's planner bridge.

    Counts are what Python takes for an index (whole numbers, those of numpy and True too, but not 2.0), times what
    converts to a float without being a text.
    """

    wants_passes = True

    def __init__(self, planner: Planner) -> None:
        for method in ("initial_tick_ms", "on_tick"):
            if not callable(getattr(planner, method, None)):
                raise ScenarioError(
                    "a planner has the methods initial_tick_ms() and on_tick(metrics); "
                    f"{shown(planner)} has no {method}"
                )
        self._planner = planner

    def first_tick_ms(self) -> float | None:
        return _time_ms(self._planner.initial_tick_ms(), "the planner's initial_tick_ms()")

    def on_tick(self, now_ms: float, fleet: ControlledFleet) -> float | None:
        answer, place = self._planner.on_tick(fleet.metrics()), f"the planner's answer at {now_ms} ms"
        if not isinstance(answer, Mapping):
            raise SimulationError(
                f"{place} must be a dict with {', '.join(ANSWER_KEYS)}, got {shown(answer, 100)}"
            )
        missing = [key for key in ANSWER_KEYS if key not in answer]
        if missing:
            raise SimulationError(f"{place} lacks {', '.join(missing)}: {shown(answer, 100)}")
        _, target = (_target(answer[key], f"{place}: {key}") for key in ANSWER_KEYS[:2])
        following = answer["next_tick_ms"]
        next_ms = None if following is None else _time_ms(following, f"{place}: next_tick_ms")
        if target is not None:
            fleet.apply_target(target)
        return next_ms


ANSWER_KEYS = ("target_prefill", "target_decode", "next_tick_ms")
"""Keys of a planner's answer."""


def _target(value: Any, place: str) -> int | None:
    if value is None:
        return None
    try:
        count = operator.index(value)
    except TypeError:
        raise SimulationError(
            f"{place} must be a whole number of workers or None, got {shown(value)}"
        ) from None
    if not 0 <= count <= MOST_WORKERS:
        raise SimulationError(f"{place} must be from 0 to {MOST_WORKERS} workers, got {shown(value)}")
    return count


def _time_ms(value: Any, place: str) -> float:
    try:
        return math.ldexp(value, 0)  # unlike float() it takes no texts
    except (TypeError, ValueError, OverflowError):
        raise SimulationError(f"{place} must be a time in ms, got {shown(value)}") from None


def is_due_later(next_ms: float | None, now_ms: float) -> bool:
    """Whether there is another tick: a finite time after now."""
    return next_ms is not None and math.isfinite(next_ms) and next_ms > now_ms
