"""What the fleet asks of a workload while it runs, and what all workloads have in common."""

from __future__ import annotations

from math import inf
from typing import Protocol

from dynamo_sim.errors import SimulationError
from dynamo_sim.traces.lines import SkippedLine
from dynamo_sim.workload.request import Request


class Source(Protocol):
    """Hands out requests when they are due, and hears how they ended (`spec 01, 16`)."""

    hears_endings: bool
    """False where no later arrival depends on an earlier request: `ended` then need not be called."""

    ignores_cap: bool
    """Whether the reference runs this kind of workload to its end whatever the time cap (`spec 08, 8`)."""

    def next_ms(self) -> float | None:
        """The earliest time a request is known to be due, or None when nothing is known to come.

        A closed loop that waits for a slot knows of nothing (None), although it is not exhausted.
        """

    def take_due(self, now_ms: float, in_flight: int) -> list[Request]:
        """Remove and return the requests due at or before ``now_ms``, in the order of their dispatch.

        ``in_flight`` is the number of requests in the system at the beginning of the call; closed loops with a
        cap on requests need it. Arrival stamps are set as `spec 01, 8 and 9` say.
        """

    def ended(self, request: Request, now_ms: float, rejected: bool) -> None:
        """Hear that ``request`` ended at ``now_ms``; may make later requests due."""

    def exhausted(self) -> bool:
        """Whether no request will ever come again, whatever ends."""


class WorkloadSource:
    """A `Source` (see there) that knows how much it offers.

    Attributes:
        hears_endings: False where no later arrival depends on an earlier request.
        ignores_cap: whether a run goes on to its end whatever its time cap: the reference does that where
            requests wait for requests of other sessions (`spec 08, 8`).
        total: number of requests it hands out in all.
        skipped: bad lines of the trace that were left out.
    """

    hears_endings = True
    ignores_cap = False

    def __init__(self) -> None:
        self.total = 0
        self.skipped: list[SkippedLine] = []

    def next_ms(self) -> float | None:
        """The earliest time a request is known to be due, or None when nothing is known to come."""
        return None

    def take_due(self, now_ms: float, in_flight: int) -> list[Request]:
        """Remove and return the requests due at or before ``now_ms``, in the order of their dispatch."""
        raise NotImplementedError

    def ended(self, request: Request, now_ms: float, rejected: bool) -> None:
        """Hear that ``request`` ended at ``now_ms``; may make later requests due."""

    def exhausted(self) -> bool:
        """Whether no request will ever come again, whatever ends."""
        raise NotImplementedError


def end_of_pause(now_ms: float, pause_ms: float, after: Request) -> float:
    """When a pause after a request is over.

    Raises:
        SimulationError: never: the sum is too large for a clock.
    """
    end_ms = now_ms + pause_ms
    if end_ms == inf:
        raise SimulationError(
            f"the pause after {after.name} would never end: it begins at {now_ms} ms and takes {pause_ms} ms; shorten "
            "the pauses of the workload"
        )
    return end_ms
