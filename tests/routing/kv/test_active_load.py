"""Booked load (spec 06, 3.2)."""

from dynamo_sim.routing.kv.active_load import ActiveLoad


def one_worker() -> ActiveLoad:
    load = ActiveLoad()
    load.add_worker(0)
    return load


def test_the_first_token_takes_back_the_tokens_and_keeps_the_blocks() -> None:
    load = one_worker()
    load.book(7, 0, 256, [1, 2, 3, 4])
    load.prefill_completed(7)
    load.prefill_completed(7)
    assert (load.prefill_tokens[0], load.active_blocks(0)) == (0, 4)


def test_blocks_of_two_requests_count_once_until_both_have_ended() -> None:
    load = one_worker()
    load.book(7, 0, 256, [1, 2, 3, 4])
    load.book(8, 0, 64, [1, 2, 3, 5])
    assert load.active_blocks(0) == 5
    load.freed(7)
    assert (load.prefill_tokens[0], load.active_blocks(0)) == (64, 4)
    assert load.shared_depths([1, 2, 3, 4]) == {0: 3}


def test_requests_share_no_blocks_where_reuse_is_not_assumed() -> None:
    load = one_worker()
    load.book(7, 0, 128, [1, 2], shared=False)
    load.book(8, 0, 128, [1, 2], shared=False)
    assert (load.active_blocks(0), load.shared_depths([1, 2])) == (4, {})
    load.freed(7)
    assert load.active_blocks(0) == 2
