"""Which worker holds which blocks (`spec 06, 3` and `spec 06, 11`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class OverlapIndex:
    """Blocks of workers, as one bit mask of worker ids for each block.

    A block is the interned id of a whole prefix: equal ids mean equal prefixes (`spec 06, 2`). Looking a prompt up
    costs one step for each block that some worker holds, whatever the number of workers.
    """

    def __init__(self) -> None:
        self._holders: dict[int, int] = {}
        self._known = 0

    def add_worker(self, worker_id: int) -> None:
        """Count a worker from now on; it holds nothing yet."""
        self._known |= 1 << worker_id

    def forget_worker(self, worker_id: int) -> None:
        """Count a worker no longer. Ids are not reused, so its bits may stay in the masks."""
        self._known &= ~(1 << worker_id)

    def store(self, worker_id: int, blocks: Iterable[int]) -> None:
        """A worker holds these blocks now."""
        bit = 1 << worker_id
        holders = self._holders
        for block in blocks:
            holders[block] = holders.get(block, 0) | bit

    def remove(self, worker_id: int, blocks: Iterable[int]) -> None:
        """A worker holds these blocks no longer; blocks that it did not hold change nothing."""
        bit = 1 << worker_id
        holders = self._holders
        for block in blocks:
            left = holders.get(block, 0) & ~bit
            if left:
                holders[block] = left
            else:
                holders.pop(block, None)

    def depths(self, blocks: Sequence[int]) -> dict[int, int]:
        """Number of leading blocks of a prompt that each worker holds; workers that hold none are left out."""
        depths: dict[int, int] = {}
        holding = self._known
        for depth, block in enumerate(blocks):
            still = holding & self._holders.get(block, 0)
            if still != holding:
                if depth:
                    _note(depths, holding & ~still, depth)
                holding = still
                if not holding:
                    return depths
        if blocks:
            _note(depths, holding, len(blocks))
        return depths


def _note(depths: dict[int, int], workers: int, depth: int) -> None:
    """Give each worker of a mask its depth."""
    while workers:
        lowest = workers & -workers
        depths[lowest.bit_length() - 1] = depth
        workers ^= lowest
