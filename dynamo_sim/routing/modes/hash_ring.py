"""Consistent hashing: where a key goes changes for few keys when a worker comes or goes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

POINTS_OF_A_DIGEST = 8
_POINT = np.dtype("<u8")


class HashRing:
    """Workers at pseudo-random points of a ring of 2^64 points; a key belongs to the first worker at or after its own.

    Args:
        points_per_worker: the more, the more evenly keys are shared out; a multiple of 8 is used up to it.
    """

    def __init__(self, points_per_worker: int = 256) -> None:
        self._digests = max(1, points_per_worker // POINTS_OF_A_DIGEST)
        self._points_of: dict[int, NDArray[np.uint64]] = {}
        self._points: list[int] = []  # lists: a few elements are read at a time
        self._owners: list[int] = []
        self._is_sorted = True

    def __contains__(self, worker_id: int) -> bool:
        return worker_id in self._points_of

    def add(self, worker_id: int) -> None:
        """Put a worker on the ring."""
        digests = (blake2b(f"worker {worker_id}/{i}".encode()).digest() for i in range(self._digests))
        self._points_of[worker_id] = np.frombuffer(b"".join(digests), _POINT)
        self._is_sorted = False

    def remove(self, worker_id: int) -> None:
        """Take a worker from the ring; not an error where it is not on it."""
        if self._points_of.pop(worker_id, None) is not None:
            self._is_sorted = False

    def owners(self, key: str) -> Iterator[int]:
        """The workers in the order in which they stand behind the point of a key, each once."""
        if not self._is_sorted:
            self._sort()
        start = bisect_left(
            self._points, int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")
        )
        owners, seen = self._owners, set[int]()
        for places in (range(start, len(owners)), range(start)):
            for place in places:
                owner = owners[place]
                if owner not in seen:
                    seen.add(owner)
                    yield owner

    def _sort(self) -> None:
        self._is_sorted = True
        if not self._points_of:
            self._points, self._owners = [], []
            return
        points = np.concatenate(list(self._points_of.values()))
        owners = np.repeat(list(self._points_of), [len(each) for each in self._points_of.values()])
        order = np.argsort(points, kind="stable")
        self._points, self._owners = points[order].tolist(), owners[order].tolist()
