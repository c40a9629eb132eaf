"""The least loaded worker gets the request."""

from __future__ import annotations

import pytest

from dynamo_sim.errors import SimulationError
from tests.routing.modes.fakes import FakePool, prompt, router, send


def test_an_idle_fleet_is_served_in_turn() -> None:
    made, pool = router({"mode": "least_loaded"}, 3), FakePool.of(3)
    chosen = []
    for _ in range(6):
        chosen.append(send(made, pool, prompt()))
        pool.set(chosen[-1], in_flight=0)
    assert chosen == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("by", ["in_flight", "waiting", "waiting_tokens", "kv_usage"])
def test_the_smallest_load_decides(by: str) -> None:
    made, pool = router({"mode": "least_loaded", "by": by}, 3), FakePool.of(3)
    for worker_id, load in enumerate((0.3, 0.1, 0.2) if by == "kv_usage" else (3, 1, 2)):
        pool.set(worker_id, **{by: load})
    assert send(made, pool, prompt()) == 1


def test_a_new_worker_is_the_least_loaded_one() -> None:
    made, pool = router({"mode": "least_loaded"}, 2), FakePool.of(3)
    send(made, pool, prompt())
    send(made, pool, prompt())
    made.worker_joined(2)
    assert send(made, pool, prompt()) == 2


def test_a_draining_worker_gets_nothing() -> None:
    made, pool = router({"mode": "least_loaded"}, 2), FakePool.of(2)
    made.worker_draining(0)
    assert [send(made, pool, prompt()) for _ in range(3)] == [1, 1, 1]


def test_only_workers_that_changed_are_looked_at() -> None:
    made, pool = router({"mode": "least_loaded", "by": "waiting"}, 100), FakePool.of(100)
    send(made, pool, prompt())
    before = pool.looks
    pool.set(7, waiting=1)
    send(made, pool, prompt())
    assert pool.looks - before == 2  # worker 7, and the one that got the first request


def test_kv_usage_that_may_have_grown_is_read_where_it_could_be_the_smallest() -> None:
    made, pool = router({"mode": "least_loaded", "by": "kv_usage"}, 3), FakePool.of(3)
    for worker_id, usage in enumerate((0.1, 0.2, 0.9)):
        pool.set(worker_id, in_flight=1, kv_usage=usage)
    assert send(made, pool, prompt(), now_ms=0.0) == 0
    pool.workers[0].kv_usage = 0.3  # it grew within its step: nobody says so
    pool.take_changed()
    before = pool.looks
    assert send(made, pool, prompt(), now_ms=1.0) == 1
    assert pool.looks - before == 2


def test_scraped_loads_are_those_of_the_last_scrape() -> None:
    spec = {"mode": "least_loaded", "by": "waiting", "metrics": {"interval_ms": 100}}
    made, pool = router(spec, 2), FakePool.of(2)
    pool.set(0, waiting=5)
    assert send(made, pool, prompt()) == 0  # as new, for all that is known
    made.scrape(pool)
    assert [send(made, pool, prompt()) for _ in range(3)] == [1, 1, 1]


def test_without_a_worker_the_mode_is_named() -> None:
    with pytest.raises(SimulationError, match="least_loaded has nowhere to send it"):
        send(router({"mode": "least_loaded"}), FakePool.of(0), prompt())
