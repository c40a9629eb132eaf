"""What is copied, where it goes, and how it comes back (`spec 11, 3, 5 and 6`).

A block is 1 MB; it takes 1 ms on a link where it is alone.
"""

from __future__ import annotations

import math
from typing import Any

from dynamo_sim.kv.allocation import NO_ROOM, TAKEN, BlockedUntil
from dynamo_sim.kv.block_table import BlockTable
from dynamo_sim.kv.offload.eviction_order import Block
from dynamo_sim.kv.offload.gpu_pool import OffloadingPool
from dynamo_sim.kv.offload.lease import Lease
from dynamo_sim.kv.offload.settings import DEFAULT_GBPS, OffloadSettings
from dynamo_sim.kv.offload.shared import SharedTiers
from dynamo_sim.kv.offload.worker_tiers import WorkerTiers

NAMES = dict.fromkeys(DEFAULT_GBPS, 1.0)


def shared(host_blocks: int = 8, **settings: Any) -> SharedTiers:
    return SharedTiers(OffloadSettings(host_blocks, 1_000_000, gbps=NAMES, **settings))


def worker_of(below: SharedTiers, host_blocks: int = 8, **settings: Any) -> WorkerTiers[str]:
    return WorkerTiers(below, OffloadSettings(host_blocks, 1_000_000, gbps=NAMES, **settings))


def tiers(host_blocks: int = 8, **settings: Any) -> WorkerTiers[str]:
    return worker_of(shared(host_blocks, **settings), host_blocks, **settings)


def evicted(tested: WorkerTiers[str], *names: int) -> Lease | None:
    """Let the GPU evict blocks that have nothing to do with each other."""
    lease = tested.evict([Block(name, None) for name in names])
    tested.check()
    return lease


def freed(tested: WorkerTiers[str], now_ms: float) -> int:
    """Slots of the GPU that a poll gives free."""
    landed = tested.poll(now_ms)
    tested.check()
    return 0 if landed is None else landed.free_slots


def run_dry(tested: WorkerTiers[str]) -> float:
    """Poll at every deadline until nothing is in progress; the time of the last one."""
    while tested.deadline_ms < math.inf:
        freed(tested, tested.deadline_ms)
    return tested.now_ms


# ------------------------------------------------------------ from the GPU to the host


def test_an_eviction_is_a_copy_and_its_slots_come_free_when_it_lands() -> None:
    tested = tiers()
    lease = evicted(tested, 1, 2)
    assert lease is not None and not lease.is_over
    assert (tested.quarantined_slots, tested.deadline_ms) == (2, 2.0)
    assert freed(tested, 1.9) == 0
    assert freed(tested, 2.0) == 2
    assert lease.is_over and tested.host.run([1, 2]) == 2


def test_what_the_host_has_is_dropped_at_once() -> None:
    tested = tiers()
    evicted(tested, 1)
    freed(tested, 1.0)
    assert evicted(tested, 1) is None


def test_without_room_on_the_host_a_block_is_dropped_at_once() -> None:
    tested = tiers(host_blocks=1)
    evicted(tested, 1)
    freed(tested, 1.0)
    tested.host.hold([1])
    assert evicted(tested, 2) is None
    assert tested.dropped_blocks == 1


def test_slots_of_dropped_victims_wait_for_the_last_copy_of_their_lease() -> None:
    tested = tiers(batch_blocks=1)
    evicted(tested, 9)
    freed(tested, 1.0)
    tested.now_ms = 10.0
    tested.evict([Block(name, None) for name in (1, 9, 2)])
    assert freed(tested, 11.0) == 1
    assert freed(tested, 12.0) == 2


def test_one_block_at_a_time_with_batches_of_one() -> None:
    tested = tiers(batch_blocks=1)
    lease = evicted(tested, 1, 2)
    assert lease is not None
    assert freed(tested, 1.0) == 1 and not lease.is_over
    assert freed(tested, 2.0) == 1 and lease.is_over


def test_batches_of_two_let_two_transfers_run_at_once() -> None:
    tested = tiers(batch_blocks=2)
    evicted(tested, 1, 2, 3, 4, 5)
    assert freed(tested, 4.0) == 4
    assert tested.deadline_ms == 5.0
    assert freed(tested, 5.0) == 1


def test_a_waiting_batch_starts_when_the_landing_is_seen() -> None:
    tested = tiers(batch_blocks=1)
    evicted(tested, 1, 2)
    assert freed(tested, 7.0) == 1
    assert tested.deadline_ms == 8.0


def test_blocks_in_progress_count_twice_against_the_room_for_others() -> None:
    tested = tiers(host_blocks=10)
    evicted(tested, *range(1, 7))
    assert (tested.host.available, tested.host.reserved) == (4, 6)
    assert evicted(tested, 7) is None


def test_a_block_evicted_again_while_it_is_in_progress_is_copied_twice() -> None:
    tested = tiers()
    evicted(tested, 1)
    assert evicted(tested, 1) is not None
    run_dry(tested)
    assert (tested.host.used_blocks, tested.host.free) == (1, 7)


def test_a_copy_that_finds_no_room_at_its_start_is_given_up_and_its_lease_ends() -> None:
    tested = tiers(host_blocks=6, batch_blocks=2)
    evicted(tested, 1)
    freed(tested, 0.5)
    evicted(tested, 2)
    lease = evicted(tested, 3, 4)
    assert lease is not None
    tested.host.take_slots(tested.host.available)  # others have taken the room that was promised
    landed = tested.poll(1.5)
    assert landed is not None and landed.free_slots == 1 + 2
    assert lease.is_over and tested.dropped_blocks == 2


# ------------------------------------------------------------ from the host on


def test_what_lands_on_the_host_is_copied_to_the_disk_at_once() -> None:
    tested = tiers(disk_blocks=4)
    evicted(tested, 1)
    freed(tested, 1.0)
    assert tested.deadline_ms == 2.0
    assert run_dry(tested) == 2.0
    assert tested.find([1]) == (1, 0, 0)
    tested.host.take_slots(8)
    assert tested.find([1]) == (0, 1, 0)


def test_a_block_that_is_copied_on_cannot_be_evicted_meanwhile() -> None:
    tested = tiers(host_blocks=1, disk_blocks=4)
    evicted(tested, 1)
    freed(tested, 1.0)
    assert evicted(tested, 2) is None
    freed(tested, 2.0)
    assert evicted(tested, 2) is not None


def test_a_worker_copies_to_the_disk_one_batch_at_a_time() -> None:
    tested = tiers(disk_blocks=8, batch_blocks=2)
    evicted(tested, 1, 2, 3, 4)
    freed(tested, 4.0)
    assert freed(tested, 5.9) == 0
    assert tested.deadline_ms == 6.0
    assert run_dry(tested) == 8.0


def test_the_store_takes_several_at_once_and_never_forgets() -> None:
    tested = tiers(host_blocks=4, object_store=True, batch_blocks=2)
    evicted(tested, 1, 2, 3, 4)
    freed(tested, 4.0)
    assert run_dry(tested) == 8.0
    tested.host.take_slots(4)
    assert tested.find([1, 2, 3, 4]) == (0, 0, 4)


def test_a_landing_that_another_worker_finds_is_settled_at_once_by_its_owner() -> None:
    both = shared(disk_blocks=4)
    owner, other = worker_of(both), worker_of(both)
    evicted(owner, 1)
    freed(owner, 1.0)
    other.poll(2.0)
    assert owner.deadline_ms == 2.0
    assert owner.host.available == 7  # still held
    owner.poll(2.0)
    assert owner.host.available == 8
    assert owner.deadline_ms == math.inf


def test_what_a_killed_worker_has_in_progress_lands_without_it() -> None:
    both = shared(disk_blocks=4, batch_blocks=1)
    killed, other = worker_of(both, batch_blocks=1), worker_of(both)
    evicted(killed, 1, 2)
    freed(killed, 1.0)
    freed(killed, 2.0)
    killed.abandon()
    run_dry(other)
    assert both.disk is not None and both.disk.reserved == 0
    assert other.find([2]) == (0, 1, 0)


# ------------------------------------------------------------ back to the GPU


def pool_with_host_blocks(*names: int, blocks: int = 4, **settings: Any) -> OffloadingPool[str]:
    """A pool whose free slots are all there and whose host tier has these blocks, a prompt."""
    below = tiers(**settings)
    parents: list[int | None] = [None, *names]
    below.evict([Block(name, parent) for name, parent in reversed(list(zip(names, parents, strict=False)))])
    run_dry(below)
    return OffloadingPool(blocks, 4, True, below, range)


def test_a_prompt_comes_back_from_the_host() -> None:
    pool = pool_with_host_blocks(1, 2)
    table = BlockTable((1, 2), 2)
    begun_ms = pool.tiers.now_ms
    assert pool.swap_in("a", table, 0, 2) is TAKEN
    assert (pool.active, pool.tiers.deadline_ms) == (2, begun_ms + 2.0)
    pool.check([])
    over = pool.poll(begun_ms + 2.0)
    assert over is not None and [swap_in.request for swap_in in over] == ["a"]
    assert pool.cached_prefix(table) == (2, 0)
    assert pool.active == 0
    pool.check([])


def test_the_blocks_of_a_swap_in_are_held_on_the_host_meanwhile() -> None:
    pool = pool_with_host_blocks(1, host_blocks=1)
    assert pool.swap_in("a", BlockTable((1,), 1), 0, 1) is TAKEN
    assert pool.tiers.evict([Block(7, None)]) is None


def test_equal_prompts_have_slots_and_transfers_of_their_own() -> None:
    pool = pool_with_host_blocks(1, blocks=2)
    begun_ms = pool.tiers.now_ms
    for request in "ab":
        assert pool.swap_in(request, BlockTable((1,), 1), 0, 1) is TAKEN
    assert pool.active == 2
    over = pool.poll(begun_ms + 2.0)
    assert over is not None
    assert [swap_in.request for swap_in in over] == ["b", "a"]  # put in front one by one, "a" comes first
    assert (pool.free, pool.inactive) == (1, 1)
    pool.check([])


def test_a_prompt_that_is_nowhere_is_a_miss() -> None:
    pool = pool_with_host_blocks(1)
    assert pool.swap_in("a", BlockTable((5,), 1), 0, 1) is NO_ROOM
    pool.check([])


def test_a_swap_in_without_slots_on_the_gpu_is_a_miss() -> None:
    pool = pool_with_host_blocks(1, blocks=2)
    pool.open(2)
    assert pool.swap_in("a", BlockTable((1,), 1), 0, 1) is NO_ROOM
    assert pool.tiers.host.available == 8


def test_a_swap_in_waits_for_the_lease_of_what_it_evicts() -> None:
    pool = pool_with_host_blocks(1, blocks=1)
    pool.take(other := BlockTable((7,), 1), 1)
    pool.release(other)
    answer = pool.swap_in("a", BlockTable((1,), 1), 0, 1)
    assert isinstance(answer, BlockedUntil)
    assert not pool.tiers.parked
    pool.poll(pool.tiers.deadline_ms)
    assert answer.lease.is_over
    assert pool.swap_in("a", BlockTable((1,), 1), 0, 1) is TAKEN


def below_host(pool: OffloadingPool[str]) -> None:
    """Let the host tier forget what was copied on."""
    pool.tiers.host.take_slots(pool.tiers.host.available)
    pool.tiers.host.free, pool.tiers.host.in_transit = pool.tiers.host.in_transit, 0


def test_from_the_disk_a_block_goes_to_the_host_and_then_to_the_gpu() -> None:
    pool = pool_with_host_blocks(1, disk_blocks=4)
    below_host(pool)
    begun_ms = pool.tiers.now_ms
    assert pool.swap_in("a", BlockTable((1,), 1), 0, 1) is TAKEN
    assert pool.tiers.host.reserved == 1
    assert pool.poll(begun_ms + 1.0) == []
    assert pool.tiers.host.reserved == 0
    over = pool.poll(begun_ms + 2.0)
    assert over is not None and len(over) == 1
    assert pool.tiers.host.run([1]) == 1


def test_from_the_store_a_block_takes_the_same_way() -> None:
    pool = pool_with_host_blocks(1, object_store=True)
    below_host(pool)
    begun_ms = pool.tiers.now_ms
    assert pool.swap_in("a", BlockTable((1,), 1), 0, 1) is TAKEN
    assert pool.poll(begun_ms + 1.0) == []
    over = pool.poll(begun_ms + 2.0)
    assert over is not None and over[0].store_blocks == 1


def test_without_room_to_stage_only_what_the_host_has_comes_back() -> None:
    pool = pool_with_host_blocks(1, 2, host_blocks=4, disk_blocks=4)
    pool.tiers.host.hold([1])
    pool.tiers.host.take_slots(3)  # block 2 is on the disk alone now
    pool.tiers.host.give_back([1])
    assert pool.tiers.find([1, 2]) == (1, 1, 0)
    assert pool.swap_in("a", BlockTable((1, 2), 2), 0, 2) is TAKEN
    (swap_in,) = pool.tiers.parked
    assert (swap_in.host_blocks, swap_in.disk_blocks) == (1, 0)


def test_the_slots_of_a_cancelled_request_come_free_when_its_transfer_lands() -> None:
    pool = pool_with_host_blocks(1)
    begun_ms = pool.tiers.now_ms
    pool.swap_in("a", BlockTable((1,), 1), 0, 1)
    assert pool.tiers.cancel("a")
    assert pool.active == 1
    pool.poll(begun_ms + 1.0)
    assert (pool.active, pool.free) == (0, 4)
    pool.check([])


def test_a_cancelled_request_goes_no_further_than_the_step_in_progress() -> None:
    pool = pool_with_host_blocks(1, disk_blocks=4)
    below_host(pool)
    begun_ms = pool.tiers.now_ms
    pool.swap_in("a", BlockTable((1,), 1), 0, 1)
    pool.tiers.cancel("a")
    pool.poll(begun_ms + 1.0)
    assert pool.free == 4 and pool.tiers.is_quiet
    pool.check([])


def test_swap_ins_share_the_link() -> None:
    pool = pool_with_host_blocks(1, 2, 3, 4, blocks=16)
    begun_ms = pool.tiers.now_ms
    for request in "abcd":
        pool.swap_in(request, BlockTable((1, 2, 3, 4), 4), 0, 4)
    assert pool.tiers.deadline_ms == begun_ms + 16.0
    over = pool.poll(begun_ms + 16.0)
    assert over is not None and [swap_in.request for swap_in in over] == ["d", "c", "b", "a"]
