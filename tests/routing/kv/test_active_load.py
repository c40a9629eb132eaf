"""Booked load (spec 06, 3.2)."""

from dynamo_sim.routing.kv.active_load import ActiveLoad
from tests.helpers import request


def loads(count: int = 1) -> ActiveLoad:
    load = ActiveLoad()
    for worker in range(count):
        load.add_worker(worker)
    return load


def booked(load: ActiveLoad, worker: int = 0) -> tuple[int, int]:
    return int(load.prefill_tokens[worker]), int(load.active_blocks[worker])


def test_the_first_token_takes_back_the_tokens_and_keeps_the_blocks() -> None:
    load, one = loads(), request()
    load.book(one, 0, 256, [1, 2, 3, 4])
    load.prefill_completed(one)
    load.prefill_completed(one)
    assert booked(load) == (0, 4)


def test_blocks_of_two_requests_count_once_until_both_have_ended() -> None:
    load, one, other = loads(), request(), request()
    load.book(one, 0, 256, [1, 2, 3, 4])
    load.book(other, 0, 64, [1, 2, 3, 5])
    assert booked(load) == (320, 5)
    load.freed(one)
    assert booked(load) == (64, 4)
    assert load.shared_depths([1, 2, 3, 4]).by_worker() == {0: 3}
    load.freed(other)
    assert booked(load) == (0, 0) and not load.shared_depths([1])


def test_private_blocks_are_shared_with_nobody() -> None:
    load, one, other = loads(), request(), request()
    load.book(one, 0, 128, private_blocks=2)
    load.book(other, 0, 128, private_blocks=2)
    assert booked(load) == (256, 4)
    load.freed(one)
    assert booked(load) == (128, 2)


def test_what_is_booked_on_a_worker_that_left_counts_for_nobody() -> None:
    load, one, other = loads(2), request(), request()
    load.book(one, 0, 256, [1, 2])
    load.book(other, 1, 128, [1, 2])
    load.forget_worker(0)
    load.freed(one)
    assert booked(load, 1) == (128, 2)
    assert load.shared_depths([1, 2]).by_worker() == {1: 2}


def test_there_is_room_for_any_number_of_workers() -> None:
    load, one = loads(), request()
    load.add_worker(1000)
    load.book(one, 1000, 64, [1])
    assert booked(load, 1000) == (64, 1)
