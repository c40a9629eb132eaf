"""What the fleet sees of the cache tiers below the GPU of a worker (`spec 11`)."""

from __future__ import annotations

from typing import Protocol


class LowerTiers(Protocol):
    """Transfers of one worker, which land while it is busy or idle."""

    @property
    def deadline_ms(self) -> float:
        """When a poll finds something next, for all that is known now; infinity for never (`spec 11, 2`)."""

    @property
    def has_transfers(self) -> bool:
        """Whether any transfer of this worker is in progress."""

    @property
    def is_quiet(self) -> bool:
        """Whether no request is parked and nothing is in progress (`spec 11, 10`)."""

    def poll(self, now_ms: float) -> bool:
        """Find what has landed by now and start what waited for it; whether there was anything (`spec 11, 4.1`)."""

    def time_is(self, now_ms: float) -> None:
        """A command comes at ``now_ms``: what it evicts sets out then."""

    def abandon(self) -> None:
        """The worker was killed."""
