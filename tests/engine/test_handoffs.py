"""The handoff commands of both engines: what they do, and that nothing is lost by them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dynamo_sim.engine.build import scheduler_factory
from dynamo_sim.engine.handoff import Cancelled, Reserved
from dynamo_sim.engine.roles import Stage
from dynamo_sim.errors import SimulationError
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.workload.milestones import HandoffMilestones
from dynamo_sim.workload.request import Request

BOTH = pytest.mark.parametrize("engine", ["vllm", "sglang"])


def worker(stage: Stage, engine: str, blocks: int = 8, **more: Any) -> Any:
    """The engine of one worker with blocks of 4 tokens."""
    args = EngineArgs(engine_type=engine, num_gpu_blocks=blocks, block_size=4, **more)
    return scheduler_factory(args, stage=stage)(0)


def request(index: int, prompt: int, output: int = 3, content: int | None = None) -> Request:
    made = Request(index, 0.0, prompt, output, None if content is None else ((content, prompt),))
    made.handoff = HandoffMilestones()
    return made


def run_pass(scheduler: Any, now_ms: float = 0.0) -> Any:
    step = scheduler.start(now_ms, 1)
    scheduler.finish(step)
    scheduler.check()
    return step


def available(scheduler: Any) -> int:
    """Tokens that can be had, by evictions if need be."""
    if hasattr(scheduler, "pool"):
        return int(scheduler.pool.available * scheduler.block_size)
    return int(scheduler.cache.available)


@BOTH
def test_a_computed_prompt_is_kept_until_its_source_is_released(engine: str) -> None:
    scheduler = worker(Stage.PREFILL, engine)
    prompt = request(0, 6)
    scheduler.handoffs.submit_prefill(prompt)
    step = run_pass(scheduler)
    assert step.signals and not scheduler.request_count
    assert available(scheduler) < 32
    scheduler.handoffs.release_source(prompt)
    assert available(scheduler) == 32
    assert scheduler.handoffs.is_empty


@BOTH
def test_the_token_of_a_prefill_worker_shows_nowhere(engine: str) -> None:
    scheduler = worker(Stage.PREFILL, engine)
    prompt = request(0, 6)
    scheduler.handoffs.submit_prefill(prompt)
    run_pass(scheduler)
    assert prompt.first_token_ms is None and prompt.emitted_tokens == 0
    assert prompt.first_admit_ms == 0.0


@BOTH
def test_a_destination_is_reserved_then_activated_then_decoded(engine: str) -> None:
    scheduler = worker(Stage.DECODE, engine)
    prompt = request(0, 6, output=2)
    assert scheduler.handoffs.reserve_destination(prompt)
    assert scheduler.handoffs.attempt() == Reserved(prompt, 8)  # whole blocks
    assert scheduler.request_count == 0
    scheduler.handoffs.activate_destination(prompt)
    run_pass(scheduler)
    run_pass(scheduler, 100.0)
    assert prompt.emitted_tokens == 2
    assert available(scheduler) == 32 and scheduler.handoffs.is_empty


@BOTH
def test_a_destination_larger_than_the_pool_is_refused(engine: str) -> None:
    assert not worker(Stage.DECODE, engine).handoffs.reserve_destination(request(0, 33))


@BOTH
def test_an_attempt_sets_room_aside_for_one_destination(engine: str) -> None:
    handoffs = worker(Stage.DECODE, engine).handoffs
    first, second = request(0, 4), request(1, 4)
    handoffs.reserve_destination(first)
    handoffs.reserve_destination(second)
    assert handoffs.attempt().request is first
    assert handoffs.attempt().request is second
    assert handoffs.attempt() is None


@BOTH
def test_a_pending_destination_is_tried_again_only_when_capacity_has_changed(engine: str) -> None:
    scheduler = worker(Stage.DECODE, engine)
    handoffs = scheduler.handoffs
    running, pending = request(0, 16, output=1), request(1, 24)
    handoffs.reserve_destination(running)
    handoffs.attempt()
    handoffs.activate_destination(running)
    handoffs.reserve_destination(pending)
    assert handoffs.attempt() is None
    assert not handoffs.attempt_is_due
    run_pass(scheduler)
    assert handoffs.attempt_is_due
    assert handoffs.attempt().request is pending


@BOTH
def test_only_what_is_missing_has_to_be_sent(engine: str) -> None:
    scheduler = worker(Stage.DECODE, engine)
    first, again = request(0, 8, output=1, content=7), request(1, 12, content=7)
    scheduler.handoffs.reserve_destination(first)
    scheduler.handoffs.attempt()
    scheduler.handoffs.activate_destination(first)
    run_pass(scheduler)
    scheduler.handoffs.reserve_destination(again)
    assert scheduler.handoffs.attempt() == Reserved(again, 4)


@BOTH
def test_a_reserved_prompt_cannot_be_found_before_it_has_come(engine: str) -> None:
    handoffs = worker(Stage.DECODE, engine).handoffs
    first, same = request(0, 8, content=7), request(1, 8, content=7)
    handoffs.reserve_destination(first)
    handoffs.reserve_destination(same)
    assert handoffs.attempt().missing_tokens == 8
    assert handoffs.attempt().missing_tokens == 8


def test_a_vllm_worker_with_all_places_taken_reserves_nothing() -> None:
    scheduler = worker(Stage.DECODE, "vllm", max_num_seqs=1)
    running, pending = request(0, 4), request(1, 4)
    scheduler.handoffs.reserve_destination(running)
    scheduler.handoffs.attempt()
    scheduler.handoffs.activate_destination(running)
    run_pass(scheduler)
    scheduler.handoffs.reserve_destination(pending)
    assert scheduler.handoffs.attempt() is None


def test_trtllm_workers_hand_nothing_over() -> None:
    with pytest.raises(SimulationError, match="trtllm"):
        worker(Stage.PREFILL, "trtllm").handoffs.submit_prefill(request(0, 6))


@BOTH
@pytest.mark.parametrize("seed", range(60))
def test_no_block_is_lost_in_any_sequence_of_commands(engine: str, seed: int) -> None:
    draw = random.Random(f"{engine}/{seed}")
    stage = draw.choice([Stage.PREFILL, Stage.DECODE])
    blocks = draw.choice([6, 12, 40])
    # SGLang loses slots for good when it retracts a request with duplicate pages (`spec 05, 12`): no prompt is shared.
    content = [None] if engine == "sglang" else [None, 1, 2]
    scheduler = worker(stage, engine, blocks, max_num_seqs=draw.choice([1, 3, 256]))
    handoffs = scheduler.handoffs
    coming = [request(i, draw.randint(1, 20), draw.randint(1, 9), draw.choice(content)) for i in range(30)]
    here: list[Request] = []
    reserved: list[Request] = []
    now = 0.0
    for _ in range(120):
        what = draw.random()
        if what < 0.35 and coming:
            new = coming.pop()
            if stage is Stage.PREFILL:
                handoffs.submit_prefill(new)
                here.append(new)
            elif handoffs.reserve_destination(new):
                here.append(new)
        elif what < 0.45 and here:
            gone = here.pop(draw.randrange(len(here)))
            cancel = handoffs.cancel_source if stage is Stage.PREFILL else handoffs.cancel_destination
            assert isinstance(cancel(gone), Cancelled)
            reserved = [each for each in reserved if each is not gone]
        elif what < 0.6 and stage is Stage.PREFILL:
            kept = [each for each in here if each in handoffs.kept]
            if kept:
                handoffs.release_source(draw.choice(kept))
        elif what < 0.6 and reserved:
            handoffs.activate_destination(reserved.pop(draw.randrange(len(reserved))))
        else:
            if scheduler.request_count:
                try:
                    now = run_pass(scheduler, now).end_ms + 1.0
                except SimulationError:
                    break  # a request that can never finish alone
            if stage is Stage.DECODE and (granted := handoffs.attempt()) is not None:
                reserved.append(granted.request)
        scheduler.check()
    for left in here:
        cancel = handoffs.cancel_source if stage is Stage.PREFILL else handoffs.cancel_destination
        cancel(left)
        scheduler.check()
    assert not scheduler.request_count and handoffs.is_empty
    assert available(scheduler) == blocks * 4
    assert scheduler.queue.returned.count == scheduler.queue.arrivals.count == 0
