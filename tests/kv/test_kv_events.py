"""KV events: what a router learns of the blocks a worker has cached."""

from __future__ import annotations

from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.kv.block_table import BlockTable
from dynamo_sim.kv.kv_events import KvEvent, KvEventLog, PageCopies


def publishing_pool(blocks: int) -> tuple[BlockPool, KvEventLog]:
    pool = BlockPool(blocks, 4)
    pool.events = KvEventLog()
    return pool, pool.events


def test_taking_stores_new_blocks_and_a_hit_divides_them() -> None:
    pool, log = publishing_pool(10)
    pool.take(BlockTable((1, 2), 2), 2)
    assert log.take() == [KvEvent("stored", None, (1, 2))]
    pool.take(BlockTable((1, 3, 4), 3), 3)
    assert log.take() == [KvEvent("stored", 1, (3, 4))]
    pool.take(BlockTable((9, 2, 8), 3), 3)
    assert log.take() == [KvEvent("stored", None, (9,)), KvEvent("stored", 2, (8,))]


def test_a_chunk_continues_behind_the_one_before() -> None:
    pool, log = publishing_pool(10)
    table = BlockTable((1, 2, 3), 3)
    pool.take(table, 1)
    pool.take(table, 3)
    assert log.take() == [KvEvent("stored", None, (1,)), KvEvent("stored", 1, (2, 3))]


def test_what_a_take_evicts_is_removed_behind_what_it_stores() -> None:
    pool, log = publishing_pool(3)
    old = BlockTable((1, 2), 2)
    pool.take(old, 2)
    pool.release(old)
    log.take()
    pool.take(BlockTable((7, 8), 2), 2)
    assert log.take() == [KvEvent("stored", None, (7, 8)), KvEvent("removed", None, (2,))]


def test_releases_hits_and_private_blocks_are_not_published() -> None:
    pool, log = publishing_pool(4)
    first, again, private = BlockTable((1,), 1), BlockTable((1,), 1), BlockTable((), 2)
    pool.take(first, 1)
    log.take()
    pool.release(first)
    pool.take(again, 1)
    pool.take(private, 3)
    pool.release(private)
    pool.evict(2)
    assert log.take() == []


def test_a_block_that_fills_up_is_stored_unless_it_is_known() -> None:
    pool, log = publishing_pool(8)
    tables = [BlockTable((1, 2), 1) for _ in range(2)]
    for table in tables:
        pool.take(table, 2)
    log.take()
    for table in tables:
        pool.promote(table)
    assert log.take() == [KvEvent("stored", 1, (2,))]


def test_a_page_is_stored_with_its_first_copy_and_removed_with_its_last() -> None:
    copies = PageCopies()
    copies.stored((1, 2, 3), 0, 2)
    copies.stored((1, 2, 3), 0, 3)
    assert copies.log.take() == [KvEvent("stored", None, (1, 2)), KvEvent("stored", 2, (3,))]
    copies.removed((2, 3))
    copies.removed((1, 2))
    assert copies.log.take() == [KvEvent("removed", None, (3,)), KvEvent("removed", None, (2,))]
