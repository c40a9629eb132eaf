"""The SGLang-style scheduler against its plain twin, request by request and pass by pass, to the last bit.

Rules: `spec 05, 4 to 10`.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from dynamo_sim.engine.sglang.scheduler import SglangScheduler
from dynamo_sim.engine.step import Step
from dynamo_sim.kv.kv_events import KvEvent
from dynamo_sim.workload.request import Request
from tests.engine.sglang.driver import engine
from tests.engine.sglang.plain import PlainSglang
from tests.engine.twins import FAILED, BlockNames, block_by_block, random_pulls, random_requests, serve, story


def load(draw: random.Random) -> tuple[list[Request], dict[str, Any]]:
    """Random requests, and a pool that holds a few of them."""
    page = draw.choice([1, 1, 2, 3, 4, 8])
    requests = random_requests(draw)
    most = max(r.input_tokens + r.output_tokens for r in requests)
    args: dict[str, Any] = {
        "block_size": page,
        "num_gpu_blocks": max(-(-most // page) + 1, int(most * draw.choice([1.05, 1.3, 2.0, 4.0]) / page)),
        "max_num_seqs": draw.choice([1, 3, 8, None]),
        "sglang": {
            "schedule_policy": draw.choice(["fifo", "lpm"]),
            "chunked_prefill_size": page * draw.choice([1, 3, 8, 512]),
            "schedule_conservativeness": draw.choice([-0.3, 0.0, 0.1, 1.0, 3.0]),
            "clip_max_new_tokens": draw.choice([0, 1, 4, 4096]),
        },
    }
    if draw.random() < 0.2:
        args |= {"aic_nextn": draw.randint(1, 4), "aic_nextn_accept_rates": "0.9, 0.7, 0.7"}
    return requests, args


RARE = (1564, 1660, 2095, 2799)
"""Loads in which the order of evictions inside a stretch, or behind a retraction, shows."""


@pytest.mark.parametrize("seed", [*range(100), *RARE])
def test_the_scheduler_does_what_its_twin_does(seed: int) -> None:
    requests, args = load(random.Random(seed))
    expected = story(engine(PlainSglang, **args), requests, 1)
    for max_passes, foresees in ((1, False), (1_000_000, False), (1_000_000, True)):
        requests, _ = load(random.Random(seed))
        assert story(engine(SglangScheduler, **args), requests, max_passes, foresees=foresees) == expected


def published_by_twin(
    requests: list[Request], args: dict[str, Any]
) -> tuple[list[tuple[float, KvEvent]], bool]:
    """What the twin's passes do to the cache, with the ends of the passes; whether all slots have one owner."""
    scheduler, names, published = engine(PlainSglang, **args), BlockNames(requests, args["block_size"]), []
    for step in serve(scheduler, requests, 1):
        if step is FAILED:
            break
        published += [(step.end_ms, names.known(*event)) for event in scheduler.tree.events.log]
        scheduler.tree.events.log.clear()
    return published, not scheduler.tree.owned_twice


def published(requests: list[Request], args: dict[str, Any], max_passes: int) -> list[tuple[float, KvEvent]]:
    """What a router that asks at every end of a pass is given, with the times."""
    scheduler = engine(SglangScheduler, **args)
    scheduler.publish_kv_events()
    events: list[tuple[float, KvEvent]] = []

    def take(now_ms: float) -> None:
        is_due = scheduler.kv_events_from_ms <= now_ms
        visible = scheduler.take_kv_events(now_ms, starts_included=True)
        assert is_due or not visible
        events.extend((now_ms, event) for event in visible)

    def during(step: Step) -> None:
        for now_ms in step.ends_ms[:-1]:
            take(now_ms)

    for step in serve(scheduler, requests, max_passes, during):
        if step is not FAILED:
            take(step.end_ms)
    return events


@pytest.mark.parametrize("seed", range(100))
def test_kv_events_are_visible_from_the_end_of_the_pass_the_twin_makes_them_in(seed: int) -> None:
    requests, args = load(random.Random(seed))
    expected, is_sound = published_by_twin(requests, args)
    if not is_sound:
        return
    for max_passes in (1, 1_000_000):
        requests, _ = load(random.Random(seed))
        assert block_by_block(published(requests, args, max_passes)) == block_by_block(expected)


@pytest.mark.parametrize("seed", range(50))
def test_taking_kv_events_at_any_time_changes_nothing_else(seed: int) -> None:
    requests, args = load(random.Random(seed))
    expected = story(engine(SglangScheduler, **args), requests, 1_000_000)
    requests, _ = load(random.Random(seed))
    scheduler = engine(SglangScheduler, **args)
    assert story(scheduler, requests, 1_000_000, random_pulls(scheduler, seed)) == expected
