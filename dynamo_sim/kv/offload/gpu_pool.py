"""The GPU blocks of a vLLM-style worker whose evictions are copies (`spec 11`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Generic

from dynamo_sim.kv.allocation import NO_ROOM, TAKEN, Allocation, BlockedUntil
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.kv.block_table import BlockTable
from dynamo_sim.kv.offload.eviction_order import Block, EvictionOrder
from dynamo_sim.kv.offload.lease import Lease
from dynamo_sim.kv.offload.swap_in import R, SwapIn
from dynamo_sim.kv.offload.worker_tiers import WorkerTiers


class OffloadingPool(BlockPool, Generic[R]):
    """A block pool above lower tiers: what it evicts is copied there, and the slots come free when that is done.

    Every full block has a name here. Those that no other table can match have negative ones: they have no owners in the
    books, and no KV events. Slots in quarantine and slots of swap-ins count as active.

    Args:
        new_names: gives so many names that nothing else in the run has.

    Attributes:
        tiers: what is below.
    """

    __slots__ = ("_new_names", "_order", "_swap_in_slots", "tiers")

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        caching: bool,
        tiers: WorkerTiers[R],
        new_names: Callable[[int], range],
    ) -> None:
        super().__init__(num_blocks, block_size, caching)
        self.tiers = tiers
        self._new_names = new_names
        self._order = EvictionOrder()
        self._swap_in_slots = 0

    @property
    def available_now(self) -> int:
        return self.free

    def all_names(self, names: Sequence[int], full_blocks: int) -> Sequence[int]:
        private = full_blocks - len(names)
        return [*names, *(-name for name in self._new_names(private))] if private > 0 else names

    # ------------------------------------------------------------ questions

    def cached_prefix(self, table: BlockTable) -> tuple[int, int]:
        if not self.caching:
            return 0, 0
        owners, inactive = self._owners, self._order.ticks
        cached = held = 0
        for name in table.names[: table.full_blocks]:
            if name in owners:
                held += 1
            elif name not in inactive:
                break
            cached += 1
        if self._pins:
            held -= self._only_pinned(table.names[:cached])
        return cached, held

    # ------------------------------------------------------------ taking

    def open(self, count: int) -> Allocation:
        if count > self.free:
            if count > self.free + self.inactive:
                return NO_ROOM
            lease = self._make_room(count - self.free)
            if lease is not None:
                return BlockedUntil(lease)
        self.free -= count
        return TAKEN

    def take(self, table: BlockTable, blocks: int) -> Allocation:
        first = table.held_blocks
        indices = range(first, min(blocks, table.full_blocks))
        names = table.names
        held = [i for i in indices if names[i] in self._owners]
        revived = [i for i in indices if names[i] in self._order]
        self._revive(names[i] for i in revived)
        answer = self.open(blocks - first - len(held) - len(revived))
        if answer is not TAKEN:
            self._return(table, revived)
            return answer
        if self.events is not None:
            self._log_stored(names, _shared(names, indices), {names[i] for i in (*held, *revived)})
        for i in indices:
            self._own(names[i])
        table.held_blocks = blocks
        return TAKEN

    def reserve(self, table: BlockTable, blocks: int) -> int | BlockedUntil | None:
        found = self.hold_prefix(table)
        answer = self.open(blocks - found)
        if answer is TAKEN:
            for name in table.names[:found]:
                self._pins[name] = self._pins.get(name, 0) + 1
            table.held_blocks = found
            return blocks - found
        self.give_back_prefix(table, found)
        return None if answer is NO_ROOM else answer

    # ------------------------------------------------------------ giving back

    def release(self, table: BlockTable) -> None:
        held, names = table.held_blocks, table.names
        table.held_blocks = 0
        full = min(table.full_blocks, held)
        self.free += held - full
        for index in range(full - 1, -1, -1):
            self._disown(names, index)

    def promote(self, table: BlockTable) -> None:
        index = table.full_blocks
        table.full_blocks = index + 1
        self._adopt(table.names, index)

    def _adopt(self, names: Sequence[int], index: int) -> None:
        name = names[index]
        if name in self._owners:
            self._owners[name] += 1
            self.free += 1
            return
        if name in self._order:
            self._revive([name])
            self.free += 1
        elif self.events is not None and name > 0:
            self._log_stored(names, range(index, index + 1), set())
        self._own(name)

    # ------------------------------------------------------------ eviction

    def evict(self, count: int) -> list[int]:
        raise AssertionError("evictions take time here: ask `open`")

    def _make_room(self, count: int) -> Lease | None:
        """Evict ``count`` blocks; the lease to wait for, or None where their slots are free at once."""
        order = self._order
        victims = [order.pop() for _ in range(count)]
        self.inactive -= count
        if self.events is not None:
            gone = [block.name for block in victims if block.name > 0]
            if gone:
                self.events.removed(gone)
        lease = self.tiers.evict(victims)
        if lease is None:
            self.free += count
        return lease

    # ------------------------------------------------------------ swap-ins (`spec 11, 5`)

    def swap_in(self, request: R, table: BlockTable, cached: int, prompt_blocks: int) -> Allocation:
        """Bring blocks of a prompt back, from the first one the GPU has not.

        Args:
            request: who is parked for them.
            table: its blocks; the first ``cached`` ones are here.
            prompt_blocks: its whole prompt blocks.

        Returns:
            TAKEN: the request is parked. NO_ROOM: a miss, nothing comes back.
        """
        if cached >= prompt_blocks:
            return NO_ROOM
        tiers, names = self.tiers, table.names
        self.hold_prefix(table, cached)
        wanted = list(names[cached:prompt_blocks])
        host, disk, store = tiers.find(wanted)
        staged = disk + store
        answer: Allocation = NO_ROOM
        if staged and tiers.has_room_to_stage(staged, wanted[:host]):
            tiers.host.reserved += staged
            answer = self.open(host + staged)
            if answer is not TAKEN:
                tiers.host.reserved -= staged
        elif host:
            disk = store = staged = 0
            tiers.host.hold(wanted[:host])
            answer = self.open(host)
            if answer is not TAKEN:
                tiers.host.give_back(wanted[:host])
        if answer is not TAKEN:
            self.give_back_prefix(table, cached)
            return answer
        blocks = [self._block(names, cached + i) for i in range(host + staged)]
        self._swap_in_slots += len(blocks)
        tiers.park(SwapIn(request, table, cached, blocks, disk, store, tiers.now_ms))
        return TAKEN

    def poll(self, now_ms: float) -> list[SwapIn[R]] | None:
        """See what has landed in any tier; swap-ins that are over, the one parked last first. None for nothing new."""
        landed = self.tiers.poll(now_ms)
        if landed is None:
            return None
        self.free += landed.free_slots
        for swap_in in landed.swap_ins:
            self._swap_in_slots -= len(swap_in.blocks)
            if swap_in.is_stopped or swap_in.is_cancelled:
                self.free += len(swap_in.blocks)
            else:
                self._let_in(swap_in.blocks)
            self.give_back_prefix(swap_in.table, swap_in.prefix_blocks)
        return landed.swap_ins

    def _let_in(self, blocks: list[Block]) -> None:
        """Blocks have come: they can be found, and nobody holds them."""
        new = []
        for block in blocks:
            if block.name in self._owners or block.name in self._order:
                self.free += 1
            else:
                self._order.add(block)
                self.inactive += 1
                new.append(block)
        if self.events is not None:
            while new:
                run = 1
                while run < len(new) and new[run].parent == new[run - 1].name:
                    run += 1
                self.events.stored(new[0].parent, [block.name for block in new[:run]])
                del new[:run]

    def hold_prefix(self, table: BlockTable, blocks: int | None = None) -> int:
        """Hold the first ``blocks`` blocks of a prompt, which are here; by default all that are. How many they are."""
        count = self.cached_prefix(table)[0] if blocks is None else blocks
        names = table.names[:count]
        self._revive(name for name in names if name in self._order)
        for name in names:
            self._own(name)
        return count

    def give_back_prefix(self, table: BlockTable, blocks: int) -> None:
        """Hold the first ``blocks`` blocks no longer; the first one first (`spec 11, 5`)."""
        for index in range(blocks):
            self._disown(table.names, index)

    # ------------------------------------------------------------ inside

    def _block(self, names: Sequence[int], index: int) -> Block:
        return Block(names[index], names[index - 1] if index and self.caching else None)

    def _own(self, name: int) -> None:
        if name > 0:
            self._owners[name] = self._owners.get(name, 0) + 1

    def _disown(self, names: Sequence[int], index: int) -> None:
        name = names[index]
        if name > 0:
            count = self._owners[name] - 1
            if count:
                self._owners[name] = count
                return
            del self._owners[name]
        self._order.add(self._block(names, index))
        self.inactive += 1

    def _revive(self, names: Iterable[int]) -> None:
        for name in list(names):
            self._order.remove(name)
            self.inactive -= 1

    def _return(self, table: BlockTable, indices: Iterable[int]) -> None:
        """Put blocks back that `_revive` took out, the first one first."""
        for index in indices:
            self._order.add(self._block(table.names, index))
            self.inactive += 1

    # ------------------------------------------------------------ for tests

    def check(self, tables: Iterable[BlockTable], unsettled: int = 0) -> None:
        holders: Counter[int] = Counter()
        private = 0
        for table in tables:
            full = min(table.held_blocks, table.full_blocks)
            shared = [name for name in table.names[:full] if name > 0]
            holders.update(shared)
            private += table.held_blocks - len(shared)
        for swap_in in self.tiers.parked:
            holders.update(name for name in swap_in.table.names[: swap_in.prefix_blocks] if name > 0)
        assert self.free >= 0 and self.inactive == len(self._order)
        assert holders == self._owners
        leased = self.tiers.quarantined_slots + self._swap_in_slots
        assert self._swap_in_slots == sum(len(swap_in.blocks) for swap_in in self.tiers.parked)
        assert self.active == len(holders) + private + unsettled + leased
        assert self._owners.keys().isdisjoint(self._order.ticks)
        self.tiers.check()


def _shared(names: Sequence[int], indices: range) -> range:
    """The part of some blocks that others can match; they come before all others."""
    last = indices.stop
    while last > indices.start and names[last - 1] < 0:
        last -= 1
    return range(indices.start, last)
