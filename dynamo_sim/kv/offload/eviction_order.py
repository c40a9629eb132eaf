"""The blocks of a tier that nobody holds, in the order in which they are evicted (`spec 03, 6`; `spec 11, 7`)."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

MIN_STALE_ENTRIES = 64
"""The heap is not cleaned for less."""


class Block(NamedTuple):
    """A full block.

    Attributes:
        name: what it is called (`PrefixInterner`), the same in all tiers.
        parent: the block before it; None for the first of a prompt, and where blocks cannot be found again.
    """

    name: int
    parent: int | None


class EvictionOrder:
    """A forest of blocks; the leaf that came first goes first.

    A block may come in before its children, so its turn does not follow from its place in the order alone: as long as
    one of its children is here, it stays.
    """

    __slots__ = ("_children", "_leaves", "_parents", "_tick", "ticks")

    def __init__(self) -> None:
        self.ticks: dict[int, int] = {}
        """Every block with the number of its entry."""
        self._tick = 0
        self._parents: dict[int, int | None] = {}
        self._children: dict[int, int] = {}
        self._leaves: list[tuple[int, int]] = []  # a heap; entries that do not hold any more are passed over

    def __len__(self) -> int:
        return len(self.ticks)

    def __contains__(self, name: int) -> bool:
        return name in self.ticks

    def __iter__(self) -> Iterator[int]:
        return iter(self.ticks)

    def add(self, block: Block) -> None:
        """Let a block in, behind all others; it is not here yet."""
        name, parent = block
        tick = self.ticks[name] = self._tick
        self._tick += 1
        self._parents[name] = parent
        if parent is not None:
            self._children[parent] = self._children.get(parent, 0) + 1
        if name not in self._children:
            heappush(self._leaves, (tick, name))
            if len(self._leaves) > 2 * len(self.ticks) + MIN_STALE_ENTRIES:
                self._leaves = [(t, n) for n, t in self.ticks.items() if n not in self._children]
                heapify(self._leaves)

    def remove(self, name: int) -> Block:
        """Take a block out that is here."""
        del self.ticks[name]
        parent = self._parents.pop(name)
        if parent is not None:
            left = self._children[parent] - 1
            if left:
                self._children[parent] = left
            else:
                del self._children[parent]
                tick = self.ticks.get(parent)
                if tick is not None:
                    heappush(self._leaves, (tick, parent))
        return Block(name, parent)

    def pop(self) -> Block:
        """Take out the block whose turn it is; there must be one."""
        while True:
            tick, name = heappop(self._leaves)
            if self.ticks.get(name) == tick and name not in self._children:
                return self.remove(name)
