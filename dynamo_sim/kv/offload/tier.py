"""A cache tier below the GPU: host memory, or a disk (`spec 11, 7`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dynamo_sim.kv.offload.eviction_order import Block, EvictionOrder


class Tier:
    """``size_blocks`` slots, each free, taken by a block on its way here, or holding a block that can be found.

    A block somebody *holds* (a copy or a swap-in is in progress) stays; the others are evicted when slots are needed.

    Attributes:
        free: slots without content.
        in_transit: slots taken for blocks on their way here.
        reserved: blocks that are to come here. One in progress counts here and in ``in_transit`` (`spec 11, 3.3`).
        evicted_blocks: blocks that were evicted so far.
    """

    __slots__ = (
        "_holders",
        "_parents",
        "_unheld",
        "evicted_blocks",
        "free",
        "in_transit",
        "reserved",
        "size_blocks",
    )

    def __init__(self, size_blocks: int) -> None:
        self.size_blocks = size_blocks
        self.free = size_blocks
        self.in_transit = 0
        self.reserved = 0
        self.evicted_blocks = 0
        self._unheld = EvictionOrder()
        self._holders: dict[int, int] = {}
        self._parents: dict[int, int | None] = {}  # of held blocks

    def __contains__(self, name: int) -> bool:
        return name in self._unheld.ticks or name in self._holders

    @property
    def available(self) -> int:
        """Slots that can be had: free ones, and those of blocks nobody holds."""
        return self.free + len(self._unheld)

    @property
    def used_blocks(self) -> int:
        """Blocks that can be found here."""
        return len(self._unheld) + len(self._holders)

    def has_room_for(self, count: int) -> bool:
        """Whether ``count`` more blocks may be promised a slot."""
        return self.reserved + count <= self.available

    def run(self, names: Sequence[int]) -> int:
        """How many of some blocks are here, from the first one to the first that is missing."""
        for index, name in enumerate(names):
            if name not in self:
                return index
        return len(names)

    def unheld(self, names: Iterable[int]) -> int:
        """How many of some blocks are here, and held by nobody."""
        return sum(name in self._unheld.ticks for name in names)

    def take_slots(self, count: int) -> bool:
        """Take slots for blocks that set out for this tier: free ones, then by evicting. False without room."""
        if count > self.available:
            return False
        while self.free < count:
            self._unheld.pop()
            self.evicted_blocks += 1
            self.free += 1
        self.free -= count
        self.in_transit += count
        return True

    def land(self, block: Block, held: bool = False) -> None:
        """A block with a slot has come. Where it was here already, the slot is free again."""
        self.in_transit -= 1
        if block.name in self:
            self.free += 1
            if held:
                self.hold([block.name])
        elif held:
            self._holders[block.name] = 1
            self._parents[block.name] = block.parent
        else:
            self._unheld.add(block)

    def hold(self, names: Iterable[int]) -> None:
        """Keep blocks that are here from being evicted."""
        for name in names:
            count = self._holders.get(name, 0)
            self._holders[name] = count + 1
            if not count:
                self._parents[name] = self._unheld.remove(name).parent

    def give_back(self, names: Iterable[int]) -> None:
        """Hold blocks no longer. The last holder makes a block the newest of those nobody holds."""
        for name in names:
            count = self._holders[name] - 1
            if count:
                self._holders[name] = count
            else:
                del self._holders[name]
                self._unheld.add(Block(name, self._parents.pop(name)))

    def check(self) -> None:
        """Check that every slot has one use.

        Raises:
            AssertionError: it has none, or several.
        """
        assert self.free >= 0 and self.in_transit >= 0 and self.reserved >= 0
        assert self.free + self.in_transit + self.used_blocks == self.size_blocks
        assert self._holders.keys().isdisjoint(self._unheld.ticks)
        assert self._holders.keys() == self._parents.keys()
