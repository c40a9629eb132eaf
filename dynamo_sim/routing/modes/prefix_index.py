"""Which worker is taken to have which beginning of a prompt in its cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

from dynamo_sim.routing.kv.overlap_index import Ints, OverlapIndex
from dynamo_sim.routing.router import RoutedPool


class PrefixIndex(Protocol):
    """Knows how many leading blocks of a prompt each worker has, or is taken to have."""

    def joined(self, worker_id: int) -> None:
        """A worker counts from now on, with an empty cache."""

    def left(self, worker_id: int) -> None:
        """A worker counts no more; not an error where it never did."""

    def depths(self, blocks: Sequence[int], pool: RoutedPool) -> Ints:
        """Leading blocks that each worker has, by its id."""

    def routed(self, worker_id: int, blocks: Sequence[int]) -> None:
        """A prompt with these blocks goes to a worker."""


class RoutedPrefixIndex:
    """What was sent to each worker, most recently used blocks first, up to a capacity: a guess at its cache.

    Args:
        capacity_blocks: blocks that are remembered of each worker.
    """

    def __init__(self, capacity_blocks: int) -> None:
        self._capacity_blocks = capacity_blocks
        self._index = OverlapIndex()
        self._used: dict[int, OrderedDict[int, None]] = {}

    def joined(self, worker_id: int) -> None:
        """A worker counts from now on, with an empty cache."""
        self._index.add_worker(worker_id)
        self._used[worker_id] = OrderedDict()

    def left(self, worker_id: int) -> None:
        """A worker counts no more; not an error where it never did."""
        if self._used.pop(worker_id, None) is not None:
            self._index.forget_worker(worker_id)

    def depths(self, blocks: Sequence[int], pool: RoutedPool) -> Ints:
        """Leading blocks that were sent to each worker and are remembered."""
        return self._index.depths(blocks).as_vector(self._index.known)

    def routed(self, worker_id: int, blocks: Sequence[int]) -> None:
        """Remember the blocks of a prompt, its beginning as the most recent: it is forgotten last."""
        used = self._used[worker_id]
        blocks = blocks[: self._capacity_blocks]
        for block in reversed(blocks):
            used[block] = None
            used.move_to_end(block)
        self._index.store(worker_id, blocks)
        surplus = len(used) - self._capacity_blocks
        if surplus > 0:
            self._index.remove(worker_id, [used.popitem(last=False)[0] for _ in range(surplus)])


class EventPrefixIndex:
    """What the workers say of their caches: it is exact."""

    def __init__(self) -> None:
        self._index = OverlapIndex()

    def joined(self, worker_id: int) -> None:
        """A worker counts from now on, with an empty cache."""
        self._index.add_worker(worker_id)

    def left(self, worker_id: int) -> None:
        """A worker counts no more; not an error where it never did."""
        if self._index.known >> worker_id & 1:
            self._index.forget_worker(worker_id)

    def depths(self, blocks: Sequence[int], pool: RoutedPool) -> Ints:
        """Leading blocks that each worker has."""
        self._index.follow(pool.take_kv_events())
        return self._index.depths(blocks).as_vector(self._index.known)

    def routed(self, worker_id: int, blocks: Sequence[int]) -> None:
        """The worker will say itself what it caches."""
