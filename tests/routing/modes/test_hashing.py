"""Modes that hash: prefixes and sessions."""

from __future__ import annotations

import math
from collections import Counter

from dynamo_sim.routing.modes.hash_ring import HashRing
from tests.routing.modes.fakes import FakePool, prompt, router, send


def test_a_ring_moves_few_keys_when_a_worker_comes_or_goes() -> None:
    ring = HashRing()
    for worker_id in range(8):
        ring.add(worker_id)
    keys = [f"key {i}" for i in range(2000)]
    before = {key: next(ring.owners(key)) for key in keys}
    shares = Counter(before.values())
    assert max(shares.values()) < 1.4 * 250 and min(shares.values()) > 0.6 * 250
    ring.add(8)
    after = {key: next(ring.owners(key)) for key in keys}
    moved = [key for key in keys if after[key] != before[key]]
    assert {after[key] for key in moved} == {8} and len(moved) < 2 * 2000 / 9
    ring.remove(8)
    assert {key: next(ring.owners(key)) for key in keys} == before


def test_the_owners_of_a_key_are_all_workers_each_once() -> None:
    ring = HashRing(8)
    for worker_id in range(5):
        ring.add(worker_id)
    assert sorted(ring.owners("a key")) == [0, 1, 2, 3, 4]


def test_prompts_that_begin_alike_go_to_one_worker() -> None:
    made, pool = router({"mode": "prefix_hash", "prefix_blocks": 2, "load_factor": 100.0}, 8), FakePool.of(8)
    begins_alike = {send(made, pool, prompt(1, 2, other)) for other in range(10, 20)}
    others = {send(made, pool, prompt(1, other)) for other in range(10, 30)}
    assert len(begins_alike) == 1 and len(others) > 3


def test_no_worker_gets_more_than_its_bound() -> None:
    made, pool = router({"mode": "prefix_hash", "load_factor": 1.25}, 4), FakePool.of(4)
    for sent in range(1, 50):
        send(made, pool, prompt(1, 2, 3))
        in_flight = [worker.in_flight for worker in pool.workers.values()]
        assert max(in_flight) <= math.ceil(1.25 * sent / 4)


def test_a_prompt_unlike_others_goes_to_the_least_loaded_worker() -> None:
    made, pool = router({"mode": "prefix_hash"}, 3), FakePool.of(3)
    assert [send(made, pool, prompt()) for _ in range(3)] == [0, 1, 2]


def test_turns_of_a_session_stay_on_a_worker_as_long_as_it_is_active() -> None:
    for by in ("hash", "first_turn"):
        made, pool = router({"mode": "session_affinity", "by": by}, 4), FakePool.of(4)
        first = {name: send(made, pool, prompt(session=name)) for name in "abcdefgh"}
        assert {name: send(made, pool, prompt(session=name)) for name in first} == first
        made.worker_draining(first["a"])
        moved = {name: send(made, pool, prompt(session=name)) for name in first}
        assert first["a"] not in moved.values()
        assert all(moved[name] == first[name] for name in first if first[name] != first["a"])


def test_requests_without_a_session_go_to_the_least_loaded_worker() -> None:
    made, pool = router({"mode": "session_affinity"}, 3), FakePool.of(3)
    assert [send(made, pool, prompt()) for _ in range(3)] == [0, 1, 2]
