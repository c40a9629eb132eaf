"""What the fleet asks of a workload while it runs."""

from __future__ import annotations

from typing import Protocol

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
