"""The vLLM-style and the TRT-LLM-style scheduler against their plain twin, pass by pass, to the last bit.

Rules: `spec 02, 5 to 13; 03, 2 to 7`.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from dynamo_sim.engine.build import scheduler_factory
from dynamo_sim.engine.step import Step
from dynamo_sim.kv.kv_events import KvEvent
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.timing.build import build_timing
from dynamo_sim.timing.speculative import BurstSampler
from dynamo_sim.workload.request import Request
from tests.engine.twins import FAILED, BlockNames, block_by_block, random_pulls, random_requests, serve, story
from tests.engine.vllm.plain import PlainVllm

Load = tuple[list[Request], EngineArgs]


def load(seed: int) -> Load:
    """Random requests, and a pool that holds a few of them."""
    draw = random.Random(seed)
    size = draw.choice([2, 4, 8])
    requests = random_requests(draw)
    most = max(r.input_tokens + r.output_tokens for r in requests)
    blocks = int(most * draw.choice([0.7, 1.05, 1.3, 2.0, 4.0]) / size)
    args: dict[str, Any] = {
        "engine_type": draw.choice(["vllm", "vllm", "trtllm"]),
        "block_size": size,
        "num_gpu_blocks": max(2, -(-most // size) if draw.random() < 0.9 else 2, blocks),
        "max_num_seqs": draw.choice([1, 3, 8, None]),
        "max_num_batched_tokens": draw.choice([5, 16, 40, 8192, None]),
        "enable_prefix_caching": draw.random() < 0.8,
        "enable_chunked_prefill": draw.random() < 0.7,
        "preemption_mode": draw.choice(["lifo", "fifo"]),
        "worker_type": draw.choice(["aggregated"] * 4 + ["prefill", "decode"]),
    }
    if draw.random() < 0.2:
        args |= {"aic_nextn": draw.randint(1, 4), "aic_nextn_accept_rates": "0.9, 0.7, 0.7"}
    return requests, EngineArgs(**args)


def twin(args: EngineArgs) -> Any:
    rates = args.speculative_rates
    sampler = None if rates is None else BurstSampler(rates, args.aic_mtp_seed, 0)
    return PlainVllm(args, build_timing(args), None, sampler)


def ours(args: EngineArgs) -> Any:
    return scheduler_factory(args)(0)


@pytest.mark.parametrize("seed", range(200))
def test_the_scheduler_does_what_its_twin_does(seed: int) -> None:
    requests, args = load(seed)
    expected = story(twin(args), requests, 1)
    for max_passes, foresees in ((1, False), (1_000_000, False), (1_000_000, True)):
        requests, _ = load(seed)
        assert story(ours(args), requests, max_passes, foresees=foresees) == expected


def published_by_twin(requests: list[Request], args: EngineArgs) -> list[tuple[float, KvEvent]]:
    """What the twin's passes do to the cache, with the starts of the passes."""
    scheduler, names, published = twin(args), BlockNames(requests, args.block_size), []
    for step in serve(scheduler, requests, 1):
        if step is FAILED:
            break
        events = [names.known(*event) for event in scheduler.pool.events]
        published += [(step.start_ms, event) for event in events]
        scheduler.pool.events.clear()
    return published


def published(requests: list[Request], args: EngineArgs, max_passes: int) -> list[tuple[float, KvEvent]]:
    """What a router that asks at every start of a pass is given, with the times."""
    scheduler = ours(args)
    scheduler.publish_kv_events()
    events: list[tuple[float, KvEvent]] = []

    def take(step: Step) -> None:
        for index, now_ms in enumerate([step.start_ms, *step.ends_ms[:-1]]):
            if index and now_ms > step.start_ms:  # before it starts, nothing of it can be seen
                assert not scheduler.take_kv_events(now_ms, starts_included=False)
            is_due = scheduler.kv_events_from_ms <= now_ms
            visible = scheduler.take_kv_events(now_ms, starts_included=True)
            assert is_due or not visible
            events.extend((now_ms, event) for event in visible)

    for _ in serve(scheduler, requests, max_passes, take):
        pass
    return events


@pytest.mark.parametrize("seed", range(200))
def test_kv_events_are_visible_from_the_start_of_the_pass_the_twin_makes_them_in(seed: int) -> None:
    requests, args = load(seed)
    expected = block_by_block(published_by_twin(requests, args))
    for max_passes in (1, 1_000_000):
        requests, _ = load(seed)
        assert block_by_block(published(requests, args, max_passes)) == expected


@pytest.mark.parametrize("seed", range(50))
def test_taking_kv_events_at_any_time_changes_nothing_else(seed: int) -> None:
    requests, args = load(seed)
    expected = story(ours(args), requests, 1_000_000)
    requests, _ = load(seed)
    scheduler = ours(args)
    assert story(scheduler, requests, 1_000_000, random_pulls(scheduler, seed)) == expected
