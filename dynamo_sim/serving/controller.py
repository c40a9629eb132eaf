"""Who decides about the size of the fleet while it serves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dynamo_sim.errors import SimulationError
from dynamo_sim.records.readings import Reading
from dynamo_sim.serving.pool import Pool

MAX_IDLE_TICKS = 10_000
"""Ticks in a row with requests that wait for a worker, and nothing else to do, before a run is given up."""

MAX_IDLE_EVALUATIONS = 1_000_000
"""Evaluations between two requests: half a year at one every 15 s."""

DAY_MS = 86_400_000.0


class IdleGap:
    """Counts the evaluations since the fleet had something to do, and refuses a gap that has nearly no end.

    Args:
        who: what is evaluated, for the message.
    """

    def __init__(self, who: str) -> None:
        self._who = who
        self._evaluations = 0
        self._since_ms = 0.0

    def evaluated(self, now_ms: float, next_request_ms: float | None) -> None:
        """Note an evaluation.

        Args:
            now_ms: when.
            next_request_ms: when the next request arrives; None while there is something to do.

        Raises:
            SimulationError: at this pace there would be more than `MAX_IDLE_EVALUATIONS` until then.
        """
        if next_request_ms is None:
            self._evaluations = 0
            return
        if self._evaluations == 0:
            self._since_ms = now_ms
        self._evaluations += 1
        if self._evaluations % 1000:
            return
        expected = self._evaluations * (next_request_ms - now_ms) / (now_ms - self._since_ms)
        if expected > MAX_IDLE_EVALUATIONS:
            raise SimulationError(
                f"the next request arrives at {next_request_ms:g} ms, {(next_request_ms - now_ms) / DAY_MS:,.0f} days "
                f"later, and {self._who} would be evaluated {expected:,.0f} times until then (at most "
                f"{MAX_IDLE_EVALUATIONS:,}); is a timestamp in the wrong unit?"
            )


class ControlledFleet(Protocol):
    """What a controller can do with a run while it is asked."""

    def metrics(self) -> dict[str, Any]:
        """What the fleet shows a planner now (`spec 01, 11`); empties the buffers."""

    def apply_targets(self, prefill: int | None, decode: int | None) -> None:
        """Scale to so many workers; None for no target.

        A run with one fleet has only the second (`spec 01, 10`). In one with two fleets, one target alone sets the
        other fleet to all workers that it has now (`spec 07, 11`).
        """


class ServedFleet(ControlledFleet, Protocol):
    """What a controller may ask beside the pool that it controls."""

    def idle_until_ms(self) -> float | None:
        """When the next request arrives, in ms; None while there is something to do, or where it is not known."""


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

    def attach(self, pools: Mapping[str, Pool], serving: ServedFleet) -> None:
        """Meet the pools whose sizes it controls, by the names of their fleets, before anything is served."""

    def decision_rows(self) -> list[dict[str, Any]]:
        """One row an evaluation, for the results."""

    def readings(self) -> list[Reading]:
        """Units and thresholds of the values in the rows."""

    def notes(self, end_ms: float) -> list[str]:
        """What there is to say after a run that ended then."""

    def first_tick_ms(self) -> float | None:
        """The first time to be asked; None, infinity or NaN for never."""

    def on_tick(self, now_ms: float, fleet: ControlledFleet) -> float | None:
        """Evaluate, and act; the answer is the next time to be asked, None for never again."""

    def request_waits(self, now_ms: float) -> float | None:
        """A request waits in front of a fleet without workers: the next time to be asked, None for as before."""


class PlainController:
    """A controller that keeps no books."""

    waits_for_workers = False
    reads_as_reference = True
    warnings: list[str] = []  # noqa: RUF012 - never written to

    def attach(self, pools: Mapping[str, Pool], serving: ServedFleet) -> None:
        """Needs nothing of the pools."""

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
        plan: (time in ms, target count or None to do nothing), any order; of several targets at one time the
            last one counts. With two fleets, of the decode fleet.
        prefill_plan: the same for the prefill fleet, where there is one. A fleet without a target of its own at a time
            keeps its latest one.
    """

    wants_passes = False

    def __init__(
        self, plan: list[tuple[float, int | None]], prefill_plan: Sequence[tuple[float, int | None]] = ()
    ) -> None:
        self._decode = {at_ms: target for at_ms, target in plan if target is not None}
        self._prefill = {at_ms: target for at_ms, target in prefill_plan if target is not None}
        self._times = sorted({at_ms for at_ms, _ in (*plan, *prefill_plan)})
        self._next = 0
        self._latest: tuple[int | None, int | None] = (None, None)

    def first_tick_ms(self) -> float | None:
        return self._times[0] if self._times else None

    def on_tick(self, now_ms: float, fleet: ControlledFleet) -> float | None:
        at_ms = self._times[self._next]
        prefill, decode = self._prefill.get(at_ms), self._decode.get(at_ms)
        if prefill is not None or decode is not None:
            self._latest = (
                self._latest[0] if prefill is None else prefill,
                self._latest[1] if decode is None else decode,
            )
            fleet.apply_targets(*self._latest)
        self._next += 1
        return self._times[self._next] if self._next < len(self._times) else None


def is_due_later(next_ms: float | None, now_ms: float) -> bool:
    """Whether there is another tick: a finite time after now."""
    return next_ms is not None and math.isfinite(next_ms) and next_ms > now_ms
