"""What a pool can answer to a scheduler: taken, no room, or blocked until slots come free (`spec 11, 9`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from dynamo_sim.engine.build import scheduler_factory
from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from dynamo_sim.kv.allocation import Allocation, BlockedUntil
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.kv.block_table import BlockTable
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.workload.request import Request


@dataclass
class Lease:
    is_over: bool = False


class LeasingPool:
    """Lets a pool answer that all its slots are leased, as long as ``lease`` is not over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lease = Lease(is_over=True)
        take, open_blocks = BlockPool.take, BlockPool.open

        def leased_take(pool: BlockPool, table: BlockTable, blocks: int) -> Allocation:
            return take(pool, table, blocks) if self.lease.is_over else BlockedUntil(self.lease)

        def leased_open(pool: BlockPool, count: int) -> Allocation:
            return open_blocks(pool, count) if self.lease.is_over else BlockedUntil(self.lease)

        monkeypatch.setattr(BlockPool, "take", leased_take)
        monkeypatch.setattr(BlockPool, "open", leased_open)

    def begin(self) -> None:
        self.lease = Lease()

    def end(self) -> None:
        self.lease.is_over = True


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> LeasingPool:
    return LeasingPool(monkeypatch)


def worker(*requests: Request, **args: Any) -> VllmScheduler:
    scheduler = scheduler_factory(EngineArgs(**{"block_size": 4, "num_gpu_blocks": 16, **args}))(0)
    assert isinstance(scheduler, VllmScheduler)
    for request in requests:
        scheduler.receive(request)
    return scheduler


def test_the_head_of_the_queue_waits_for_its_lease_and_nobody_overtakes_it(pool: LeasingPool) -> None:
    scheduler = worker(Request(0, 0.0, 8, 4), Request(1, 0.0, 4, 4))
    pool.begin()
    blocked = scheduler.start(0.0, 1)
    assert (blocked.admissions, blocked.tokens, blocked.end_ms) == (0, 0, 0.0)
    assert scheduler.waiting_count == 2
    pool.end()
    assert scheduler.start(0.0, 1).admissions == 2


def test_a_token_without_a_slot_for_its_block_does_not_come_and_preempts_nobody(pool: LeasingPool) -> None:
    opens, goes_on = Request(0, 0.0, 4, 4, planned_output=(1,) * 4), Request(1, 0.0, 5, 4)
    scheduler = worker(opens, goes_on)
    plan = scheduler._scheduling.plan(0.0)
    pool.begin()
    step = scheduler._single_pass(plan)
    assert step.tokens == 1
    assert (opens.first_token_ms, goes_on.first_token_ms) == (None, step.end_ms)
    assert scheduler.preemptions == 0


def test_a_running_request_with_a_lease_holds_back_those_behind_it(pool: LeasingPool) -> None:
    opens, behind = Request(0, 0.0, 4, 4, planned_output=(1,) * 4), Request(1, 0.0, 5, 4)
    scheduler = worker(opens, behind)
    plan = scheduler._scheduling.plan(0.0)
    pool.begin()
    end_ms = scheduler._single_pass(plan).end_ms
    stalled = scheduler.start(end_ms, 1)
    assert (stalled.tokens, stalled.end_ms) == (0, end_ms)
    pool.end()
    assert scheduler.start(end_ms, 1).tokens == 2


def test_without_slots_for_the_longest_bursts_nobody_gets_a_token(pool: LeasingPool) -> None:
    scheduler = worker(Request(0, 0.0, 4, 4), Request(1, 0.0, 5, 4), aic_nextn=2)
    plan = scheduler._scheduling.plan(0.0)
    pool.begin()
    assert scheduler._single_pass(plan).tokens == 0
    pool.end()
    step = scheduler.start(100.0, 1)
    assert step.forwards == 2
