"""The cache-aware router, asked without a fleet (spec 06, 3 to 7 and 12)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from dynamo_sim.errors import SimulationError
from dynamo_sim.kv.kv_events import KvEvent
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.routing.build import RouterContext, build_router
from dynamo_sim.routing.router import Router
from dynamo_sim.routing.worker_view import WorkerView
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.scenario.routing import KvRouting
from dynamo_sim.workload.request import Request
from tests.helpers import request

BLOCK = 64


class Pool:
    """A pool whose workers publish what a test says."""

    def __init__(self) -> None:
        self.events: list[tuple[int, list[KvEvent]]] = []

    def active_worker_ids(self) -> tuple[int, ...]:
        raise NotImplementedError

    def worker(self, worker_id: int) -> WorkerView:
        raise NotImplementedError

    def take_kv_events(self) -> list[tuple[int, list[KvEvent]]]:
        events, self.events = self.events, []
        return events


class World:
    """A router of some workers."""

    def __init__(self, workers: int = 1, waits: bool = False, engine: Any = None, **config: Any) -> None:
        self.pool = Pool()
        self.interner = PrefixInterner(BLOCK)
        args = EngineArgs(block_size=BLOCK, **(engine or {}))
        context = RouterContext(args, self.interner, waits_for_workers=waits)
        self.router: Router = build_router(KvRouting(mode="kv_router", **config), context)
        for worker in range(workers):
            self.router.worker_joined(worker)

    def request(self, tokens: int, blocks: str, **more: Any) -> Request:
        """A prompt whose blocks are called by letters."""
        runs = tuple((ord(letter), BLOCK) for letter in blocks)
        return request(tokens, content=runs, **more)

    def sent(self, asked: Request, now_ms: float = 0.0) -> int | None:
        """The worker of a request, None where it waits."""
        dispatches = self.router.submit(asked, self.pool, now_ms)
        return dispatches[0].worker_id if dispatches else None

    def caches(self, worker: int, blocks: str) -> None:
        """A worker publishes the blocks of a prompt."""
        names = self.interner.names_of(self.request(BLOCK * len(blocks), blocks))
        self.pool.events.append((worker, [KvEvent("stored", None, tuple(names))]))


def test_overlap_and_load_decide_as_in_the_worked_example() -> None:
    """Example 1 of spec 06, 12."""
    world = World(2, tie_break="lowest_id")
    first, second = world.request(256, "abcd"), world.request(256, "abce")
    assert world.sent(first) == 0
    world.caches(0, "abcd")
    dispatch = world.router.submit(second, world.pool, 5.0)[0]
    assert (dispatch.worker_id, dispatch.hit_rate) == (1, 0.0)
    world.caches(1, "abce")
    for each in (first, second):
        world.router.prefill_completed(each, world.pool, 49.0)
    dispatch = world.router.submit(world.request(300, "abcde"), world.pool, 50.0)[0]
    assert (dispatch.worker_id, dispatch.hit_rate) == (0, 0.8)


def test_overlaps_are_frozen_at_arrival() -> None:
    """Example 4 of spec 06, 12: what a worker has cached since does not count."""
    world = World(1, router_queue_threshold=0.0)
    first, waiting = world.request(256, "abcd"), world.request(320, "efghj")
    assert (world.sent(first), world.sent(waiting, 1.0)) == (0, None)
    world.caches(0, "efgh")
    assert world.sent(world.request(64, "z"), 2.0) is None
    released = world.router.prefill_completed(first, world.pool, 39.0)
    assert [(each.request, each.hit_rate) for each in released] == [(waiting, 0.0)]


def test_a_worker_that_drains_takes_its_cache_and_its_load_with_it() -> None:
    world = World(2, tie_break="lowest_id")
    world.caches(0, "ab")
    running = world.request(128, "ab")
    assert world.sent(running) == 0
    world.router.worker_draining(0)
    assert world.router.freed(running, world.pool, 5.0) == ()
    world.router.worker_removed(0)
    dispatch = world.router.submit(world.request(128, "ab"), world.pool, 6.0)[0]
    assert (dispatch.worker_id, dispatch.hit_rate) == (1, 0.0)


def test_without_workers_requests_wait_for_the_next_one() -> None:
    world = World(0)
    assert world.sent(world.request(64, "a")) is None
    assert world.router.queued_count == 1 and world.router.queued_ms(30.0) == 30.0
    world.router.worker_joined(4)
    assert [each.worker_id for each in world.router.release(world.pool, 30.0)] == [4]


def test_without_workers_and_without_a_queue_a_request_is_an_error_that_names_the_key() -> None:
    with pytest.raises(SimulationError, match=r"routing\.router_queue_threshold: found null"):
        World(0, router_queue_threshold=None).sent(request(64))
    assert World(0, waits=True, router_queue_threshold=None).sent(request(64)) is None


def test_on_hold_every_request_waits() -> None:
    world = World(1, router_queue_threshold=None)
    world.router.on_hold = True
    assert world.sent(request(64)) is None and not world.router.release(world.pool, 1.0)
    world.router.on_hold = False
    assert len(world.router.release(world.pool, 2.0)) == 1


def test_the_engine_s_queue_policy_overrides_the_router_s() -> None:
    world = World(1, engine={"router_queue_policy": "lcfs"}, router_queue_threshold=0.0)
    first = request(64, index=0)
    world.sent(first)
    for index in (1, 2):
        world.sent(request(64, index=index), float(index))
    assert [each.request.index for each in world.router.prefill_completed(first, world.pool, 9.0)] == [2]


def drawn(count: int, **config: Any) -> Counter[int | None]:
    """Which of three workers get a request when the first of them has 64 tokens more to prefill."""
    world = World(3, **config)
    world.caches(1, "a")
    found: Counter[int | None] = Counter()
    for index in range(count):
        asked = world.request(256, "abcd", index=index)
        found[world.sent(asked)] += 1
        world.router.freed(asked, world.pool, 0.0)
    return found


def test_equal_smallest_costs_are_drawn_evenly() -> None:
    """Without any credit all three cost the same: chi-square with 2 degrees of freedom, p = 0.001."""
    found = drawn(3000, overlap_score_credit=0.0)
    assert sum((found[worker] - 1000) ** 2 / 1000 for worker in range(3)) < 13.8


def test_temperature_draws_by_the_formula() -> None:
    """Costs 8, 7 and 8 blocks: the worse ones have exp(-1/T) of the weight (spec 06, 5)."""
    found = drawn(3000, router_temperature=0.8)
    weights = np.array([np.exp(-1 / 0.8), 1.0, np.exp(-1 / 0.8)])
    expected = 3000 * weights / weights.sum()
    assert sum((found[w] - expected[w]) ** 2 / expected[w] for w in range(3)) < 13.8


def test_the_same_seed_draws_the_same_workers_and_lowest_id_draws_none() -> None:
    def sequence(**config: Any) -> list[int | None]:
        world = World(4, **config)
        return [world.sent(request(64, index=index)) for index in range(12)]

    assert sequence() == sequence()
    assert sequence(tie_break="lowest_id") == [0, 1, 2, 3] * 3
