"""What a request was brought back from lower cache tiers (`spec 11, 5`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SwapIns:
    """Prompt tokens that came from each tier, and the time that took.

    Attributes:
        count: how often the request was parked.
        host_tokens, disk_tokens, store_tokens: whole blocks that came from G2, G3 and G4.
        waited_ms: time it was parked.
    """

    count: int = 0
    host_tokens: int = 0
    disk_tokens: int = 0
    store_tokens: int = 0
    waited_ms: float = 0.0
