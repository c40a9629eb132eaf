"""The block pool of a vLLM-style worker (`spec 03, 2 to 6`)."""

from __future__ import annotations

import pytest

from dynamo_sim.kv.allocation import NO_ROOM, TAKEN
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.kv.block_table import BlockTable


def table(*names: int, full_blocks: int | None = None) -> BlockTable:
    """Blocks with those names; more full blocks than names are private."""
    return BlockTable(names, len(names) if full_blocks is None else full_blocks)


def test_equal_prompts_share_their_blocks() -> None:
    pool = BlockPool(10, 4)
    first, second = table(1, 2, 3), table(1, 2, 4)
    assert pool.take(first, 3) is TAKEN
    assert pool.cached_prefix(second) == (2, 2)
    assert pool.take(second, 3) is TAKEN
    assert pool.active == 4
    pool.check([first, second])


def test_released_blocks_stay_cached_until_they_are_evicted_last_block_first() -> None:
    pool = BlockPool(4, 4)
    old = table(1, 2, 3)
    pool.take(old, 3)
    pool.release(old)
    assert (pool.free, pool.inactive, pool.active) == (1, 3, 0)
    assert pool.cached_prefix(old) == (3, 0)
    assert pool.open(2) is TAKEN
    assert pool.cached_prefix(old) == (2, 0)
    assert pool.open(1) is TAKEN
    assert pool.cached_prefix(old) == (1, 0)


def test_taking_is_all_or_nothing() -> None:
    pool = BlockPool(4, 4)
    held, large = table(7, 8), table(1, 2, 3)
    pool.take(held, 2)
    assert pool.take(large, 3) is NO_ROOM
    assert (pool.free, pool.inactive, pool.active) == (2, 0, 2)
    assert pool.open(3) is NO_ROOM
    pool.check([held, large])


def test_what_a_failed_take_had_found_becomes_the_newest() -> None:
    pool = BlockPool(6, 4)
    first, second = table(1, 2), table(5, 6)
    for t in (first, second):
        pool.take(t, 2)
    for t in (first, second):
        pool.release(t)
    assert pool.take(table(1, 2, 30, 31, 32, 33, 34), 7) is NO_ROOM
    pool.open(4)  # two free ones, then those of the second table
    assert pool.cached_prefix(first) == (2, 0)
    assert pool.cached_prefix(second) == (0, 0)


def test_an_eviction_names_its_victims_in_order() -> None:
    pool = BlockPool(6, 4)
    tables = [table(1, 2, full_blocks=3), table(5, 6)]
    for t in tables:
        pool.take(t, t.full_blocks)
    for t in tables:
        pool.release(t)
    assert pool.evict(4) == [2, 1, 6]  # the third block of the first table is private
    assert (pool.free, pool.inactive) == (5, 1)


def test_a_table_finds_its_private_blocks_again() -> None:
    pool = BlockPool(4, 4)
    alone = table(full_blocks=2)
    pool.take(alone, 3)
    pool.release(alone)
    assert (pool.free, pool.inactive) == (2, 2)
    assert pool.cached_prefix(alone) == (2, 0)
    pool.open(3)
    assert pool.cached_prefix(alone) == (1, 0)
    pool.give_back(2)
    assert pool.take(alone, 3) is TAKEN
    assert (pool.free, pool.inactive, pool.active) == (0, 0, 4)
    pool.check([alone], unsettled=1)


def test_without_caching_nothing_is_ever_found() -> None:
    pool = BlockPool(4, 4, caching=False)
    t = table(full_blocks=2)
    pool.take(t, 2)
    pool.release(t)
    assert pool.cached_prefix(t) == (0, 0)
    assert (pool.free, pool.inactive) == (4, 0)


def test_a_promotion_to_known_content_joins_it() -> None:
    pool = BlockPool(6, 4)
    first, second = table(1, 2, full_blocks=1), table(1, 2, full_blocks=1)
    for t in (first, second):
        pool.take(t, 2)
    assert pool.active == 3
    pool.promote(first)
    assert pool.active == 3
    pool.promote(second)
    assert pool.active == 2
    pool.check([first, second])


def test_books_that_do_not_agree_with_the_tables_are_noticed() -> None:
    pool = BlockPool(6, 4)
    t = table(1, 2)
    pool.take(t, 2)
    t.held_blocks = 1
    with pytest.raises(AssertionError):
        pool.check([t])
