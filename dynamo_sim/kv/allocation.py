"""What a pool answers to whoever asks it for blocks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, Protocol


class Answer(Enum):
    """An answer without anything to add."""

    TAKEN = "taken"
    NO_ROOM = "no room"


class Lease(Protocol):
    """Blocks that are on their way out of the pool, and the slots they still occupy (`spec 11, 3.2`)."""

    @property
    def is_over(self) -> bool:
        """Whether their slots have been given back, so that asking again makes sense."""


@dataclass(frozen=True, slots=True)
class BlockedUntil:
    """There will be slots when ``lease`` is over; nothing was taken."""

    lease: Lease


TAKEN: Final = Answer.TAKEN
"""All blocks asked for are held now."""
NO_ROOM: Final = Answer.NO_ROOM
"""Not even evictions make enough room; nothing was taken."""

Allocation = Literal[Answer.TAKEN, Answer.NO_ROOM] | BlockedUntil
"""An answer is about all blocks asked for together. A pool without lower tiers never answers `BlockedUntil`."""
