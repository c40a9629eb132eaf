"""The block pool of a vLLM-style worker (`spec 03, 2 to 6`)."""

from __future__ import annotations

from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.kv.block_pool import BlockPool
from tests.helpers import request


def sequence(names: list[int], tokens: int | None = None, size: int = 4) -> Sequence:
    tokens = len(names) * size if tokens is None else tokens
    return Sequence(request(input_tokens=tokens), 4, names, size)


def test_equal_prompts_share_their_blocks() -> None:
    pool = BlockPool(10, 4)
    first, second = sequence([1, 2, 3]), sequence([1, 2, 4])
    assert pool.take(first, 0, 3)
    assert pool.cached_prefix(second) == (8, 8)
    assert pool.take(second, 0, 3)
    assert pool.active == 4


def test_released_blocks_stay_cached_until_they_are_evicted_last_block_first() -> None:
    pool = BlockPool(4, 4)
    old = sequence([1, 2, 3])
    pool.take(old, 0, 3)
    pool.release(old, 3)
    assert (pool.free, pool.inactive, pool.active) == (1, 3, 0)
    assert pool.cached_prefix(old) == (12, 0)
    pool.take_fresh(2)
    assert pool.cached_prefix(old) == (8, 0)
    pool.take_fresh(1)
    assert pool.cached_prefix(old) == (4, 0)


def test_taking_is_all_or_nothing() -> None:
    pool = BlockPool(4, 4)
    held = sequence([7, 8])
    pool.take(held, 0, 2)
    assert not pool.take(sequence([1, 2, 3]), 0, 3)
    assert (pool.free, pool.inactive, pool.active) == (2, 0, 2)


def test_what_a_failed_take_had_found_becomes_the_newest() -> None:
    pool = BlockPool(6, 4)
    first, second = sequence([1, 2]), sequence([5, 6])
    for s in (first, second):
        pool.take(s, 0, 2)
    for s in (first, second):
        pool.release(s, 2)
    assert not pool.take(sequence([1, 2, 30, 31, 32, 33, 34]), 0, 7)
    pool.take_fresh(4)  # two free ones, then those of the second sequence
    assert pool.cached_prefix(first) == (8, 0)
    assert pool.cached_prefix(second) == (0, 0)


def test_a_preempted_sequence_finds_its_unnamed_blocks_again() -> None:
    pool = BlockPool(4, 4)
    alone = sequence([], tokens=10)
    pool.take(alone, 0, 3)
    pool.release(alone, 3)
    assert (pool.free, pool.inactive) == (2, 2)
    assert pool.cached_prefix(alone) == (8, 0)
    pool.take_fresh(3)
    assert pool.cached_prefix(alone) == (4, 0)
    pool.free += 2
    assert pool.take(alone, 0, 3)
    assert (pool.free, pool.inactive, pool.active) == (0, 0, 4)


def test_without_caching_nothing_is_ever_found() -> None:
    pool = BlockPool(4, 4, caching=False)
    s = sequence([], tokens=8)
    pool.take(s, 0, 2)
    pool.release(s, 2)
    assert pool.cached_prefix(s) == (0, 0)
    assert (pool.free, pool.inactive) == (4, 0)


def test_a_promotion_to_known_content_joins_it() -> None:
    pool = BlockPool(6, 4)
    first, second = sequence([1, 2], tokens=6), sequence([1, 2], tokens=6)
    for s in (first, second):
        pool.take(s, 0, 2)
    assert pool.active == 3
    pool.promote(first, 1)
    assert pool.active == 3
    pool.promote(second, 1)
    assert pool.active == 2
