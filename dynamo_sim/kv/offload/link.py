"""A link between two cache tiers: its transfers share the bandwidth (`spec 11, 2`)."""

from __future__ import annotations

import math
from typing import Generic, TypeVar

BYTES_PER_MS_AND_GBPS = 1e6
"""1 GB/s is 10^9 bytes a second."""

LANDING_TOLERANCE_MS = 1e-9
"""A transfer that would land so soon has landed."""

P = TypeVar("P")


class Transfer(Generic[P]):
    """Bytes on their way.

    Attributes:
        payload: what they are, for the owner of the link.
        remaining_bytes: what is left at the time of the link.
    """

    __slots__ = ("payload", "remaining_bytes")

    def __init__(self, payload: P, remaining_bytes: float) -> None:
        self.payload = payload
        self.remaining_bytes = remaining_bytes


class Link(Generic[P]):
    """One direction between two tiers. The transfers on it get equal shares of the bandwidth.

    Args:
        gbps: GB a second; 0 for no limit.

    Attributes:
        active: transfers in progress.
        deadline_ms: when the next of them lands, for all that is known now; infinity for never.
        transfers, moved_bytes: of all transfers that were started.
    """

    __slots__ = (
        "_bandwidth",
        "_busy_ms",
        "_busy_since_ms",
        "_now_ms",
        "active",
        "deadline_ms",
        "moved_bytes",
        "transfers",
    )

    def __init__(self, gbps: float) -> None:
        self._bandwidth = gbps * BYTES_PER_MS_AND_GBPS if gbps else math.inf
        self._now_ms = 0.0
        self._busy_ms = 0.0
        self._busy_since_ms = 0.0
        self.active: list[Transfer[P]] = []
        self.deadline_ms = math.inf
        self.transfers = 0
        self.moved_bytes = 0

    def start(self, now_ms: float, size_bytes: int, payload: P) -> None:
        """Begin a transfer; `advance` has been called for ``now_ms``."""
        self._now_ms = max(now_ms, self._now_ms)
        if not self.active:
            self._busy_since_ms = self._now_ms
        remaining = 0.0 if self._bandwidth == math.inf else float(size_bytes)
        self.active.append(Transfer(payload, remaining))
        self._set_deadline()
        self.transfers += 1
        self.moved_bytes += size_bytes

    def advance(self, now_ms: float) -> list[P]:
        """Let time pass up to ``now_ms``; the payloads that have landed, in order of landing."""
        landed: list[P] = []
        active = self.active
        if now_ms < self._now_ms:
            return landed
        while active:
            rate = self._bandwidth / float(len(active))
            first = min(range(len(active)), key=lambda i: active[i].remaining_bytes)
            duration_ms = self._duration_ms(active[first].remaining_bytes, rate)
            landing_ms = self._now_ms + duration_ms
            if landing_ms > now_ms + LANDING_TOLERANCE_MS:
                if now_ms > self._now_ms:
                    self._move((now_ms - self._now_ms) * rate)
                break
            if duration_ms > 0:
                self._move(duration_ms * rate)
            self._now_ms = landing_ms
            landed.append(active[first].payload)
            active[first] = active[-1]  # as in the reference; it decides the order of later equals
            active.pop()
            if not active:
                self._busy_ms += landing_ms - self._busy_since_ms
        self._now_ms = max(now_ms, self._now_ms)  # the latest landing may lie within the tolerance
        self._set_deadline()
        return landed

    def _set_deadline(self) -> None:
        active = self.active
        if not active:
            self.deadline_ms = math.inf
        elif self._bandwidth == math.inf:
            self.deadline_ms = self._now_ms
        elif len(active) == 1:
            self.deadline_ms = self._now_ms + active[0].remaining_bytes / self._bandwidth
        else:
            least = min(transfer.remaining_bytes for transfer in active)
            shared = 0.0
            for _ in active:
                shared += least
            self.deadline_ms = self._now_ms + shared / self._bandwidth

    def busy_ms(self, now_ms: float) -> float:
        """How long there have been transfers on it, up to ``now_ms``."""
        return self._busy_ms + (max(0.0, now_ms - self._busy_since_ms) if self.active else 0.0)

    def _duration_ms(self, size_bytes: float, rate: float) -> float:
        return 0.0 if rate == math.inf else size_bytes / rate

    def _move(self, size_bytes: float) -> None:
        for transfer in self.active:
            transfer.remaining_bytes = max(transfer.remaining_bytes - size_bytes, 0.0)
