"""Changes of a fleet, and what caused them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FleetCause(StrEnum):
    """What happened to workers of a fleet."""

    START = "start"
    """The run begins with them; they are active."""
    ADDED = "added"
    """A target made them. They start, or are active at once where workers have no startup time."""
    READY = "ready"
    """Their startup is over: they are active."""
    CANCELLED = "cancelled"
    """Their startup was cancelled, and they are gone."""
    MARKED = "marked"
    """They are marked for removal: they get nothing new, finish what they have, and leave."""
    REMOVED = "removed"
    """They had nothing left to do, and are gone."""
    KILLED = "killed"
    """Their grace period was over before they had drained, and they are gone with the requests they had."""

    @property
    def makes(self) -> bool:
        """Whether workers exist from here on."""
        return self in (FleetCause.START, FleetCause.ADDED)

    @property
    def ends(self) -> bool:
        """Whether workers are gone from here on."""
        return self in (FleetCause.CANCELLED, FleetCause.REMOVED, FleetCause.KILLED)


@dataclass(slots=True)
class FleetChange:
    """The size of a fleet from ``at_ms`` on, and what changed it; ``worker_ids`` names who it happened to."""

    at_ms: float
    active: int
    starting: int
    draining: int
    cause: FleetCause
    worker_ids: tuple[int, ...] = ()
