"""Slots of a lower tier, and what is evicted from it (`spec 11, 3.3 and 7`)."""

from __future__ import annotations

from dynamo_sim.kv.offload.eviction_order import Block, EvictionOrder
from dynamo_sim.kv.offload.tier import Tier


def chain(*names: int) -> list[Block]:
    """Blocks of one prompt."""
    return [Block(name, parent) for name, parent in zip(names, (None, *names), strict=False)]


def tier(size: int, *blocks: Block) -> Tier:
    made = Tier(size)
    for block in blocks:
        assert made.take_slots(1)
        made.land(block)
    return made


def names(order: EvictionOrder) -> list[int]:
    return [order.pop().name for _ in range(len(order))]


def test_the_leaf_that_came_first_goes_first() -> None:
    order = EvictionOrder()
    for block in (*chain(1, 2, 3), *chain(11, 12)):
        order.add(block)
    assert names(order) == [3, 2, 1, 12, 11]


def test_a_parent_stays_as_long_as_a_child_is_here() -> None:
    order = EvictionOrder()
    one, two = chain(1, 2)
    order.add(one)
    order.add(Block(5, None))
    order.add(two)
    assert names(order) == [5, 2, 1]


def test_a_parent_whose_child_was_taken_out_has_its_old_turn() -> None:
    order = EvictionOrder()
    for block in (*chain(1, 2), Block(5, None)):
        order.add(block)
    order.remove(2)
    assert names(order) == [1, 5]


def test_free_slots_are_taken_before_a_block_is_evicted() -> None:
    tested = tier(3, *reversed(chain(1, 2)))
    assert tested.take_slots(2)
    assert 2 not in tested and 1 in tested
    tested.check()


def test_a_held_block_is_not_evicted_and_takes_room() -> None:
    tested = tier(1, Block(1, None))
    tested.hold([1])
    assert not tested.has_room_for(1)
    assert not tested.take_slots(1)
    tested.give_back([1])
    assert tested.take_slots(1)
    tested.check()


def test_a_block_that_is_held_twice_is_free_after_both_gave_it_back() -> None:
    tested = tier(1, Block(1, None))
    tested.hold([1, 1])
    tested.give_back([1])
    assert tested.available == 0
    tested.give_back([1])
    assert tested.available == 1


def test_giving_back_makes_a_block_the_newest() -> None:
    tested = tier(2, Block(1, None), Block(2, None))
    tested.hold([1])
    tested.give_back([1])
    tested.take_slots(1)
    assert 1 in tested and 2 not in tested


def test_the_slot_of_a_block_that_is_here_already_is_free_again() -> None:
    tested = tier(2, Block(1, None))
    tested.take_slots(1)
    tested.land(Block(1, None))
    assert (tested.free, tested.used_blocks) == (1, 1)
    tested.check()


def test_a_run_ends_at_the_first_missing_block() -> None:
    tested = tier(4, *chain(1, 2), Block(4, 3))
    assert tested.run([1, 2, 3, 4]) == 2
