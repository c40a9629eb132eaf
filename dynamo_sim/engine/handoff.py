"""What the engines of a disaggregated fleet do beside their passes: commands, and their results (`spec 07, 5`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeVar

from dynamo_sim.engine.lengths import Lengths
from dynamo_sim.workload.request import Request


class Reserved(NamedTuple):
    """Room was set aside for the prompt of a request.

    Attributes:
        missing_tokens: tokens whose KV was not there already, in whole blocks.
    """

    request: Request
    missing_tokens: int


class Cancelled(Enum):
    """What came of a cancellation."""

    NOTHING = "nothing was here"
    KEPT = "KV that was kept, or set aside, is free again"
    QUEUED = "a request has left the worker: it waited or ran, and does so no longer"


class HandoffCommands(Protocol):
    """The commands of one worker's engine.

    A prefill worker *keeps* the KV of a prompt that it has computed until it is told to release it. A decode worker has
    *pending* destinations (accepted, first come first served), *reserved* ones (room is set aside), and activated ones,
    which are ordinary requests. But for `submit_prefill` and `reserve_destination`, commands are for a worker without
    a pass in progress.
    """

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept, pending or reserved here."""

    @property
    def attempt_is_due(self) -> bool:
        """Whether `attempt` could do anything."""

    def requests(self) -> list[Request]:
        """Requests whose KV is kept here, and those with a pending or reserved destination."""

    def description(self) -> str | None:
        """What is kept, pending and reserved here, for a person; None for nothing."""

    def submit_prefill(self, request: Request) -> None:
        """Queue the prompt of a request; it plays no part before the next pass starts."""

    def release_source(self, request: Request) -> None:
        """Give up the KV that is kept for a request; what others can match stays cached."""

    def cancel_source(self, request: Request) -> Cancelled:
        """Forget the prompt of a request, wherever it is."""

    def reserve_destination(self, request: Request) -> bool:
        """Queue a destination for the prompt of a request; False when it is larger than the whole pool."""

    def attempt(self) -> Reserved | None:
        """Set room aside for the pending destination that has waited longest, if there is room now (`spec 07, 5.2`).

        One that found none is tried again only after capacity has changed.
        """

    def activate_destination(self, request: Request) -> None:
        """The KV of a reserved destination has come: the request waits for its place in the batch."""

    def cancel_destination(self, request: Request) -> Cancelled:
        """Forget the destination of a request, wherever it is."""


class Entry(Protocol):
    """What a list of destinations has to know of a sequence."""

    request: Request
    prompt_tokens: int


E = TypeVar("E", bound=Entry)


class Destinations(Generic[E]):
    """Pending and reserved destinations of a decode worker, and the rule when to try again (`spec 07, 5.2`).

    Args:
        queued: counts all of them, as requests that wait for decoding.

    Attributes:
        pending: accepted, without room yet; the first one is tried next.
        reserved: with room set aside, by request.
    """

    __slots__ = ("_queued", "_tried_at", "pending", "reserved")

    def __init__(self, queued: Lengths) -> None:
        self.pending: deque[E] = deque()
        self.reserved: dict[Request, E] = {}
        self._queued = queued
        self._tried_at: int | None = None  # generation of the latest attempt for the head

    def accept(self, entry: E) -> None:
        """Add a pending destination."""
        self.pending.append(entry)
        self._queued.add(entry.prompt_tokens)

    def is_due(self, generation: int) -> bool:
        """Whether the head has not been tried since capacity changed last; ``generation`` counts the changes."""
        return bool(self.pending) and self._tried_at != generation

    def attempt(self, generation: int, set_aside: Callable[[E], int | None]) -> Reserved | None:
        """Try the head if it is due; ``set_aside`` answers with the missing tokens, or None for no room."""
        if not self.is_due(generation):
            return None
        head = self.pending[0]
        missing = set_aside(head)
        if missing is None:
            self._tried_at = generation
            return None
        self._tried_at = None
        self.reserved[head.request] = self.pending.popleft()
        return Reserved(head.request, missing)

    def drop_pending(self, request: Request) -> bool:
        """Take out the pending destination of a request; whether there was one."""
        entry = find(self.pending, request)
        if entry is None:
            return False
        if entry is self.pending[0]:
            self._tried_at = None
        self.pending.remove(entry)
        self._queued.remove(entry.prompt_tokens)
        return True

    def drop_reserved(self, request: Request) -> E | None:
        """Take out the reserved destination of a request, if there is one."""
        entry = self.reserved.pop(request, None)
        if entry is not None:
            self._queued.remove(entry.prompt_tokens)
        return entry

    def requests(self) -> list[Request]:
        """Requests with a destination here that is not activated."""
        return [entry.request for entry in (*self.pending, *self.reserved.values())]


class Handoffs(Generic[E]):
    """What the engines share of `HandoffCommands`: how room is set aside, and given up, is for each of them to say.

    Args:
        queued: counts destinations, as requests that wait for decoding.

    Attributes:
        kept: sequences whose prompts are computed and whose KV is kept, by request.
        destinations: pending and reserved ones.
        generation: counts the changes of capacity: ends, preemptions, releases, and the like (`spec 07, 5.3`).
    """

    def __init__(self, queued: Lengths) -> None:
        self.kept: dict[Request, E] = {}
        self.destinations: Destinations[E] = Destinations(queued)
        self.generation = 0

    @property
    def is_empty(self) -> bool:
        return not (self.kept or self.destinations.pending or self.destinations.reserved)

    @property
    def attempt_is_due(self) -> bool:
        return bool(self.destinations.pending) and self.destinations.is_due(self.generation)

    def requests(self) -> list[Request]:
        return [*self.kept, *self.destinations.requests()]

    def description(self) -> str | None:
        counts = {
            "prompts are kept for decode workers": len(self.kept),
            "destinations wait for room": len(self.destinations.pending),
            "destinations have room and wait for their KV": len(self.destinations.reserved),
        }
        return ", ".join(f"{count} {what}" for what, count in counts.items() if count) or None

    def attempt(self) -> Reserved | None:
        if not self.destinations.pending:
            return None
        return self.destinations.attempt(self.generation, self._set_aside)

    def cancel_source(self, request: Request) -> Cancelled:
        if request in self.kept:
            self.release_source(request)
            return Cancelled.KEPT
        return self._drop(request)

    def release_source(self, request: Request) -> None:
        """Give up the KV that is kept for a request."""
        raise NotImplementedError

    def _set_aside(self, entry: E) -> int | None:
        """Set room aside for the prompt of a destination: its missing tokens, or None for no room."""
        raise NotImplementedError

    def _drop(self, request: Request) -> Cancelled:
        """Take out a request that waits or runs."""
        raise NotImplementedError


def find(entries: Iterable[E], request: Request) -> E | None:
    """The entry of a request."""
    return next((entry for entry in entries if entry.request is request), None)
