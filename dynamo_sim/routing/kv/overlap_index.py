"""Which worker holds which blocks (`spec 06, 3` and `spec 06, 11`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.kv.kv_events import KvEvent

Ints = NDArray[np.int64]

MIN_SWEPT_WORKERS = 16
"""So many forgotten workers, and as many as there are, before their bits are swept out of the masks."""

FEW_WORKERS = 24
"""Up to so many workers of a mask are looked at one by one."""


class OverlapIndex:
    """Blocks of workers, as one bit mask of worker ids for each block.

    A block is the interned name of a whole prefix: equal names mean equal prefixes (`spec 06, 2`). Who holds a block
    holds all blocks before it, so the masks along a prompt only lose workers, and the places where they do are found by
    bisection: looking a prompt up costs the logarithm of its length for each depth that occurs, whatever the number of
    workers.

    Attributes:
        known: mask of the workers that count.
    """

    def __init__(self) -> None:
        self.known = 0
        self._holders: dict[int, int] = {}
        self._forgotten = 0

    def add_worker(self, worker_id: int) -> None:
        """Count a worker from now on; it holds nothing yet."""
        self.known |= 1 << worker_id

    def forget_worker(self, worker_id: int) -> None:
        """Count a worker no longer. Ids are not reused, so its bits may stay in the masks for a while."""
        self.known &= ~(1 << worker_id)
        self._forgotten += 1
        if self._forgotten >= max(MIN_SWEPT_WORKERS, self.known.bit_count()):
            known, self._forgotten = self.known, 0
            self._holders = {block: left for block, held in self._holders.items() if (left := held & known)}

    def store(self, worker_id: int, blocks: Sequence[int]) -> None:
        """A worker holds these blocks now, each of which comes right behind the one before it."""
        bit = 1 << worker_id
        holders = self._holders
        for index, block in enumerate(blocks):
            held = holders.get(block)
            if held is None:  # nobody holds the blocks behind it either
                holders.update(dict.fromkeys(blocks[index:], bit))
                return
            holders[block] = held | bit

    def remove(self, worker_id: int, blocks: Iterable[int]) -> None:
        """A worker holds these blocks no longer; blocks that it did not hold change nothing."""
        bit = 1 << worker_id
        holders = self._holders
        for block in blocks:
            held = holders.get(block, 0)
            if held == bit:
                del holders[block]
            elif held & bit:
                holders[block] = held ^ bit

    def follow(self, taken: Iterable[tuple[int, Iterable[KvEvent]]]) -> None:
        """Take in the events of workers, each with its id; those of workers that do not count are passed over."""
        for worker_id, events in taken:
            if self.known >> worker_id & 1:
                for event in events:
                    if event.kind == "stored":
                        self.store(worker_id, event.names)
                    else:
                        self.remove(worker_id, event.names)

    def depths(self, blocks: Sequence[int]) -> Depths:
        """Number of leading blocks of a prompt that each worker holds."""
        if not blocks:
            return Depths(())
        holders_of, known = self._holders.get, self.known
        holding = holders_of(blocks[0], 0) & known
        if not holding:
            return Depths(())
        found: list[tuple[int, int]] = []
        depth, end = 1, len(blocks)
        last = holders_of(blocks[end - 1], 0) & known
        while holding != last:
            # The first block that some of the present holders lack lies in depth..end - 1.
            low, high = depth, end - 1
            while low < high:
                middle = (low + high) // 2
                if holders_of(blocks[middle], 0) & known == holding:
                    low = middle + 1
                else:
                    high = middle
            still = holders_of(blocks[low], 0) & known
            found.append((holding & ~still, low))
            holding, depth = still, low + 1
        if holding:
            found.append((holding, end))
        return Depths(found)


class Depths:
    """How many leading blocks of one prompt workers hold.

    Args:
        groups: masks of workers with their depth, by rising depth; workers in none of them hold nothing.
    """

    __slots__ = ("_groups",)

    def __init__(self, groups: Sequence[tuple[int, int]]) -> None:
        self._groups = groups

    def __bool__(self) -> bool:
        """Whether anybody holds anything."""
        return bool(self._groups)

    def largest(self, workers: int) -> int:
        """The largest depth among the workers of a mask."""
        for mask, depth in reversed(self._groups):
            if mask & workers:
                return depth
        return 0

    def of(self, worker_id: int) -> int:
        """The depth of one worker."""
        bit = 1 << worker_id
        return next((depth for mask, depth in self._groups if mask & bit), 0)

    def by_worker(self) -> dict[int, int]:
        """The depth of each worker that holds something."""
        return {worker_id: depth for mask, depth in self._groups for worker_id in _ids(mask)}

    def as_vector(self, workers: int) -> Ints:
        """Depths by worker id, up to the highest id of a mask of workers; 0 for workers outside of the mask."""
        size = workers.bit_length()
        vector = np.zeros(size, dtype=np.int64)
        for group, depth in self._groups:
            mask = group & workers
            if mask.bit_count() <= FEW_WORKERS:
                for worker_id in _ids(mask):
                    vector[worker_id] = depth
            else:
                packed = np.frombuffer(mask.to_bytes(-(-size // 8), "little"), dtype=np.uint8)
                vector[np.unpackbits(packed, count=size, bitorder="little").view(np.bool_)] = depth
        return vector


def _ids(mask: int) -> Iterator[int]:
    """The worker ids of a mask, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
