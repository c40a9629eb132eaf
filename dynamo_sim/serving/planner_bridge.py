"""Lets a planner object decide about the size of the fleet, as the planner bridge of the reference does."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any, Protocol

from dynamo_sim.errors import ScenarioError, SimulationError
from dynamo_sim.limits import MAX_WORKERS
from dynamo_sim.serving.controller import ControlledFleet, IdleGap, PlainController, ServedFleet, is_due_later
from dynamo_sim.serving.pool import Pool
from dynamo_sim.text import shown


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
        self._gap = IdleGap("the planner")

    def attach(self, pools: Mapping[str, Pool], serving: ServedFleet) -> None:
        """Meet the run, to know when nothing is to be done."""
        self._serving = serving

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
        prefill, decode = (_target(answer[key], f"{place}: {key}") for key in ANSWER_KEYS[:2])
        following = answer["next_tick_ms"]
        next_ms = None if following is None else _time_ms(following, f"{place}: next_tick_ms")
        fleet.apply_targets(prefill, decode)
        if is_due_later(next_ms, now_ms):
            self._gap.evaluated(now_ms, self._serving.idle_until_ms())
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
    if not 0 <= count <= MAX_WORKERS:
        raise SimulationError(f"{place} must be from 0 to {MAX_WORKERS} workers, got {shown(value)}")
    return count


def _time_ms(value: Any, place: str) -> float:
    try:
        return math.ldexp(value, 0)  # unlike float() it takes no texts
    except (TypeError, ValueError, OverflowError):
        raise SimulationError(f"{place} must be a time in ms, got {shown(value)}") from None
