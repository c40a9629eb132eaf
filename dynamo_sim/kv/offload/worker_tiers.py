"""The tiers below the GPU of one worker: its host tier (G2), and its part in those that all workers share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple

from dynamo_sim.kv.offload.copy_queue import CopyQueue
from dynamo_sim.kv.offload.eviction_order import Block
from dynamo_sim.kv.offload.lease import Batch, Lease
from dynamo_sim.kv.offload.link import Link
from dynamo_sim.kv.offload.settings import LinkName, OffloadSettings
from dynamo_sim.kv.offload.shared import Owner, SharedTiers, SharedTransfer
from dynamo_sim.kv.offload.swap_in import R, SwapIn
from dynamo_sim.kv.offload.tier import Tier


class Landed(NamedTuple, Generic[R]):
    """What a poll has found.

    Attributes:
        free_slots: slots of the GPU that have come free.
        swap_ins: those that are complete, the one parked last first.
    """

    free_slots: int
    swap_ins: list[SwapIn[R]]


class WorkerTiers(Generic[R]):
    """Copies what the GPU evicts, and brings it back.

    Nothing happens here between two *polls* (`spec 11, 4`): a poll finds what has landed and starts what waited.

    Args:
        shared: G3 and G4 of the run.
        settings: sizes and speeds; what concerns the shared tiers is the same for all workers.

    Attributes:
        host: G2.
        now_ms: time of the latest poll; what starts, starts then.
        links: the links of this worker alone, by name.
        parked: swap-ins in progress, in the order in which they were parked.
        quarantined_slots: slots of the GPU whose blocks are leased.
        dropped_blocks: evicted blocks that were not copied, because the host tier had no room.
    """

    def __init__(self, shared: SharedTiers, settings: OffloadSettings) -> None:
        self.host = Tier(settings.host_blocks)
        self.now_ms = 0.0
        self.parked: list[SwapIn[R]] = []
        self.quarantined_slots = 0
        self.dropped_blocks = 0
        self._settings = settings
        self._shared = shared
        self._owner = Owner()
        self._out: Link[Batch] = Link(settings.gbps["g1_to_g2"])
        self._in: Link[SwapIn[R]] = Link(settings.gbps["g2_to_g1"])
        self._batches: CopyQueue[Batch] = CopyQueue(settings.batch_blocks, self._start_batch)
        self._to_disk: CopyQueue[list[Block]] = CopyQueue(1, self._start_disk_copy)
        self._to_store: CopyQueue[list[Block]] = CopyQueue(settings.batch_blocks, self._start_store_copy)
        shared.workers.append(self)
        shared.disk_queues.append(self._to_disk)
        shared.object_queues.append(self._to_store)
        self._given_up_slots = 0

    @property
    def links(self) -> dict[LinkName, Link[Any]]:
        """The links of this worker alone, by name."""
        return {"g1_to_g2": self._out, "g2_to_g1": self._in}

    # ------------------------------------------------------------ time

    @property
    def deadline_ms(self) -> float:
        """When a poll finds something next, for all that is known now; infinity for never (`spec 11, 2`)."""
        return min(
            self._out.deadline_ms, self._in.deadline_ms, self._shared.deadline_ms, self._owner.found_ms
        )

    @property
    def has_transfers(self) -> bool:
        """Whether a transfer of this worker is in progress, or found and not settled."""
        return bool(self._out.active or self._in.active or self._owner.in_progress)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is in progress here or on a shared link (`spec 11, 10`)."""
        return not self.parked and self.deadline_ms == math.inf

    def poll(self, now_ms: float) -> Landed[R] | None:
        """Find what has landed, and start what waited for it (`spec 11, 4.1`); None where there is nothing."""
        self.now_ms = now_ms
        out = self._out.advance(now_ms) if self._out.active else []
        swapped = self._in.advance(now_ms) if self._in.active else []
        self._shared.poll(now_ms)
        if not (out or swapped or self._owner.found or self._given_up_slots):
            return None
        free = sum(map(self._settle_batch, out))
        self._batches.start_next()
        for transfer in self._owner.take_found():
            transfer.settle()
        for batch in out:
            self._copy_on(batch.blocks)
        free += self._given_up_slots
        self.quarantined_slots -= free
        self._given_up_slots = 0
        return Landed(free, self._complete(swapped))

    def _complete(self, landed: list[SwapIn[R]]) -> list[SwapIn[R]]:
        """Swap-ins that are over, the one parked last first."""
        over = [swap_in for swap_in in reversed(self.parked) if swap_in.is_stopped or swap_in in landed]
        for swap_in in over:
            self.parked.remove(swap_in)
            if not swap_in.is_stopped:
                self._give_back(swap_in.blocks)
        return over

    # ------------------------------------------------------------ from the GPU to the host (`spec 11, 3`)

    def evict(self, victims: list[Block]) -> Lease | None:
        """Copy what the GPU evicts, in this order; None where nothing is copied, and all slots are free at once."""
        host = self.host
        waiting = {block.name for batch in self._batches.behind_next() for block in batch.blocks}
        passed = []
        for block in victims:
            if block.name in host or block.name in waiting:
                continue
            if not host.has_room_for(1):
                self.dropped_blocks += 1
                continue
            host.reserved += 1
            passed.append(block)
        if not passed:
            return None
        size = self._settings.batch_blocks
        parts = [passed[i : i + size] for i in range(0, len(passed), size)]
        lease = Lease(len(victims) - len(passed), len(parts))
        self.quarantined_slots += len(victims)
        self._batches.waiting += (Batch(lease, blocks) for blocks in parts)
        self._batches.start_next()
        return lease

    def _start_batch(self, batch: Batch) -> bool:
        count = len(batch.blocks)
        if self.host.take_slots(count):
            self._out.start(self.now_ms, count * self._settings.block_bytes, batch)
            return True
        # Held blocks have taken the room that was promised: the blocks are lost, their slots stay with the lease.
        self.host.reserved -= count
        self.dropped_blocks += count
        lease = batch.lease
        lease.dropped += count
        lease.left -= 1
        if lease.is_over:
            self._given_up_slots += lease.dropped
        return False

    def _settle_batch(self, batch: Batch) -> int:
        """A batch has landed: the slots of the GPU that come free."""
        for block in batch.blocks:
            self.host.land(block)
        count = len(batch.blocks)
        self.host.reserved -= count
        self._batches.in_progress -= 1
        lease = batch.lease
        lease.left -= 1
        return count + lease.dropped if lease.is_over else count

    # ------------------------------------------------------------ from the host on (`spec 11, 6`)

    def _copy_on(self, blocks: list[Block]) -> None:
        """Copy blocks that have come to the host tier to the tiers below it."""
        shared, host = self._shared, self.host
        to_disk = []
        for block in blocks:
            if block.name in host and shared.goes_to_disk(block.name):
                self._disk.reserved += 1
                to_disk.append(block)
        to_store = [block for block in blocks if block.name in host and shared.goes_to_store(block.name)]
        for queue, part in ((self._to_disk, to_disk), (self._to_store, to_store)):
            if part:
                host.hold(block.name for block in part)
                queue.waiting.append(part)
                queue.start_next()

    def _start_disk_copy(self, blocks: list[Block]) -> bool:
        disk = self._disk
        if not disk.take_slots(len(blocks)):
            disk.reserved -= len(blocks)
            self._give_back(blocks)
            return False

        def note() -> None:
            for block in blocks:
                disk.land(block)

        def settle() -> None:
            disk.reserved -= len(blocks)
            self._give_back(blocks)
            self._to_disk.in_progress -= 1
            self._to_disk.start_next()

        self._start_shared("g2_to_g3", blocks, SharedTransfer(self._owner, note, settle))
        return True

    def _start_store_copy(self, blocks: list[Block]) -> bool:
        objects = self._shared.objects
        assert objects is not None

        def note() -> None:
            objects.update(block.name for block in blocks)

        def settle() -> None:
            self._give_back(blocks)
            self._to_store.in_progress -= 1
            self._to_store.start_next()

        self._start_shared("g2_to_g4", blocks, SharedTransfer(self._owner, note, settle))
        return True

    def _start_shared(self, link: LinkName, blocks: list[Block], transfer: SharedTransfer) -> None:
        self._shared.links[link].start(self.now_ms, len(blocks) * self._settings.block_bytes, transfer)

    def _give_back(self, blocks: Iterable[Block]) -> None:
        self.host.give_back(block.name for block in blocks)

    # ------------------------------------------------------------ back to the GPU (`spec 11, 5`)

    def find(self, names: list[int]) -> tuple[int, int, int]:
        """How many of some blocks, from the first on, are in G2; behind them in G3; behind those in G4."""
        host = self.host.run(names)
        disk, objects = self._shared.disk, self._shared.objects
        on_disk = 0 if disk is None else disk.run(names[host:])
        in_store = 0
        if objects is not None:
            for name in names[host + on_disk :]:
                if name not in objects:
                    break
                in_store += 1
        return host, on_disk, in_store

    def has_room_to_stage(self, count: int, found: list[int]) -> bool:
        """Whether ``count`` blocks may come to the host tier while it keeps those that were ``found`` there."""
        host = self.host
        return host.has_room_for(count) and count <= host.available - host.unheld(found)

    def park(self, swap_in: SwapIn[R]) -> None:
        """Begin a swap-in. Slots of the GPU are taken, and a host reservation for the blocks that come from below.

        What the host tier has is held from now on, unless it is held already because nothing comes from below.
        """
        self.parked.append(swap_in)
        if swap_in.staged:
            self.host.hold(block.name for block in swap_in.held)
            if swap_in.disk_blocks:
                self._disk.hold(block.name for block in swap_in.from_disk)
        self._next_step(swap_in)

    def cancel(self, request: R) -> bool:
        """Forget a request that is parked, if it is; its slots come free when what is in progress has landed."""
        for swap_in in self.parked:
            if swap_in.request is request and not swap_in.is_cancelled:
                swap_in.is_cancelled = True
                return True
        return False

    @property
    def _disk(self) -> Tier:
        assert self._shared.disk is not None
        return self._shared.disk

    def _next_step(self, swap_in: SwapIn[R]) -> None:
        """Start the next transfer of a swap-in: from the store, then from the disk, then to the GPU."""
        size = self._settings.block_bytes
        if swap_in.is_cancelled:
            self._stop(swap_in)
            return
        if not swap_in.to_stage:
            self.host.reserved -= swap_in.staged
            self._in.start(self.now_ms, len(swap_in.blocks) * size, swap_in)
            return
        link, blocks = swap_in.to_stage[0]
        if not self.host.take_slots(len(blocks)):
            self._stop(swap_in)
            return

        def settle() -> None:
            del swap_in.to_stage[0]
            for block in blocks:
                self.host.land(block, held=True)
            swap_in.held += blocks
            if link == "g3_to_g2":
                self._give_back_on_disk(blocks)
            self._next_step(swap_in)

        self._start_shared(link, blocks, SharedTransfer(self._owner, lambda: None, settle))

    def _stop(self, swap_in: SwapIn[R]) -> None:
        """Give up a swap-in between two of its transfers: the request is gone, or the host tier has no room for it."""
        swap_in.is_stopped = True
        self.host.reserved -= swap_in.staged
        held = set(swap_in.held)
        self._give_back(block for block in swap_in.blocks if block in held)
        if any(link == "g3_to_g2" for link, _ in swap_in.to_stage):
            self._give_back_on_disk(swap_in.from_disk)

    def _give_back_on_disk(self, blocks: list[Block]) -> None:
        self._disk.give_back(block.name for block in blocks)

    # ------------------------------------------------------------ the end, and checks

    def abandon(self) -> None:
        """The worker was killed: what is in progress on shared links lands without it, and nothing new starts."""
        self._owner.is_gone = True
        for blocks in self._to_disk.waiting:
            self._disk.reserved -= len(blocks)
        self._to_disk.waiting.clear()
        self._to_store.waiting.clear()
        for swap_in in self.parked:
            swap_in.is_cancelled = True
        for transfer in self._owner.take_found():
            transfer.settle()

    def check(self) -> None:
        """Check that every slot has one use and that every lease will end.

        Raises:
            AssertionError: that is not so.
        """
        host = self.host
        host.check()
        in_progress = [transfer.payload for transfer in self._out.active]
        batches = [*self._batches.waiting, *in_progress]
        staged = [swap_in for swap_in in self.parked if swap_in.to_stage and not swap_in.is_stopped]
        assert host.reserved == sum(len(b.blocks) for b in batches) + sum(s.staged for s in staged)
        moving = sum(len(batch.blocks) for batch in in_progress)
        assert host.in_transit >= moving and host.in_transit <= moving + sum(s.staged for s in staged)
        leases = {id(batch.lease): batch.lease for batch in batches}
        assert len(in_progress) == self._batches.in_progress and (in_progress or not batches)
        for lease in leases.values():
            assert lease.left == sum(batch.lease is lease for batch in batches)
        leased = sum(len(batch.blocks) for batch in batches) + sum(lease.dropped for lease in leases.values())
        assert self.quarantined_slots == leased + self._given_up_slots
        if self._shared.disk is not None:
            self._shared.disk.check()
