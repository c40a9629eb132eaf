"""The router's queue: orders, classes, whose turn it is (spec 06, 6)."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.errors import SimulationError
from dynamo_sim.routing.kv.overlap_index import Depths
from dynamo_sim.routing.kv.queue import Arrival, QueueClass, RouterQueue
from dynamo_sim.scenario.routing.policy_classes import PolicyProfile
from tests.helpers import request


def arrival(tokens: int = 100, at_ms: float = 0.0, cached: int = 0, index: int = 0, **more: Any) -> Arrival:
    return Arrival(request(tokens, index=index, **more), (), Depths(()), cached, at_ms)


def order(policy: str, *arrivals: Arrival) -> list[int]:
    queue = RouterQueue([QueueClass("all", policy, budget_tokens=100, busy_fraction=0.0)])
    for each in arrivals:
        queue.push(queue.class_of(each), each, workers=1)
    popped = [queue.pop(0, now_ms=1000.0) for _ in arrivals]
    assert queue.pop(0, now_ms=1000.0) is None
    return [each.request.index for each in popped if each is not None]


def test_fcfs_goes_by_arrival_and_a_point_of_priority_is_worth_a_second() -> None:
    late = arrival(at_ms=1500.0, index=1, priority=2)
    later = arrival(at_ms=2500.0, index=2, priority=2)
    assert order("fcfs", arrival(index=0), late, later) == [1, 0, 2]


def test_lcfs_takes_the_last_and_of_one_time_the_first() -> None:
    assert order("lcfs", arrival(index=0), arrival(at_ms=5.0, index=1), arrival(at_ms=5.0, index=2)) == [
        1,
        2,
        0,
    ]


def test_wspt_takes_the_smallest_prefill_and_what_is_cached_is_none() -> None:
    whole, cached = arrival(200, index=0), arrival(300, cached=256, index=1)
    assert order("wspt", whole, cached, arrival(64, cached=64, index=2)) == [2, 1, 0]


def test_strict_priority_goes_before_everything_and_negative_priority_is_none() -> None:
    first = arrival(at_ms=9.0, index=2, strict_priority=1)
    assert order("fcfs", arrival(index=0, priority=-5), arrival(at_ms=1.0, index=1), first) == [2, 0, 1]


def test_exactly_the_threshold_is_not_busy() -> None:
    by_fraction = QueueClass("all", "fcfs", budget_tokens=512, busy_fraction=0.5)
    assert [by_fraction.is_busy(tokens) for tokens in (256, 257)] == [False, True]
    both = QueueClass("all", "fcfs", budget_tokens=512, busy_fraction=0.5, busy_tokens=100)
    assert [both.is_busy(tokens) for tokens in (100, 101, 300)] == [False, True, True]


def test_time_in_the_queue_is_summed_over_those_that_wait_and_those_that_left() -> None:
    queue = RouterQueue([QueueClass("all", "fcfs", budget_tokens=1, busy_fraction=0.0)])
    for at_ms in (0.0, 10.0):
        queue.push(queue.classes[0], arrival(at_ms=at_ms), workers=1)
    queue.pop(0, now_ms=15.0)
    assert (len(queue), queue.waited_ms(20.0)) == (1, 15.0 + 10.0)


def profile(*classes: dict[str, Any], buckets: tuple[tuple[int, str], ...] = ((0, "any"),)) -> PolicyProfile:
    return PolicyProfile.model_validate(
        {
            "default_policy_family": "latency",
            "uncached_isl_buckets": [{"min_tokens": start, "bucket": name} for start, name in buckets],
            "policy_classes": list(classes),
        }
    )


def queue_of(spec: PolicyProfile) -> RouterQueue:
    return RouterQueue([QueueClass.of(each, 8192) for each in spec.policy_classes], spec)


def test_the_class_follows_from_policy_class_and_from_the_tokens_that_are_not_cached() -> None:
    family = {"policy_family": "latency", "quantum": 1}
    queue = queue_of(
        profile(
            {"name": "ls", "cache_bucket": "small", **family},
            {"name": "lb", "cache_bucket": "big", **family},
            {"name": "vip", "quantum": 1},
            buckets=((0, "small"), (512, "big")),
        )
    )

    def name(tokens: int, cached: int = 0, policy_class: str | None = None) -> str:
        return queue.class_of(arrival(tokens, cached=cached, policy_class=policy_class)).name

    assert [name(511), name(512), name(600, cached=128)] == ["ls", "lb", "ls"]
    assert name(600, policy_class="vip") == "vip"
    assert name(600, policy_class="ls") == name(600, policy_class="unknown") == "lb"  # the default family


def test_classes_take_turns_worth_their_quantum() -> None:
    """Example 5 of spec 06, 12: nothing waits for a turn that its class cannot pay."""
    spec = profile(
        {"name": "l", "policy_family": "latency", "cache_bucket": "any", "quantum": 64},
        {"name": "b", "policy_family": "batch", "cache_bucket": "any", "quantum": 128},
    )
    queue = queue_of(spec)
    for index, tokens in ((2, 192), (3, 64), (4, 128), (5, 192), (6, 64), (7, 128), (8, 192)):
        each = arrival(tokens, float(index), index=index, policy_class="batch" if tokens == 128 else None)
        queue.push(queue.class_of(each), each, workers=1)
    popped = [queue.pop(0, now_ms=50.0) for _ in range(7)]
    assert [each.request.index for each in popped if each is not None] == [4, 7, 2, 3, 5, 6, 8]


def test_a_class_whose_workers_are_busy_keeps_what_it_has_saved() -> None:
    spec = profile(
        {
            "name": "l",
            "policy_family": "latency",
            "cache_bucket": "any",
            "quantum": 10,
            "prefill_busy_threshold": 0,
        },
        {"name": "vip", "quantum": 10, "prefill_busy_threshold": 50},
    )
    queue = queue_of(spec)
    for each in (arrival(40, index=0), arrival(40, index=1, policy_class="vip")):
        queue.push(queue.class_of(each), each, workers=1)
    first, nothing, second = (queue.pop(booked, now_ms=1.0) for booked in (20, 60, 0))
    assert first is not None and second is not None
    assert (first.request.index, nothing, second.request.index) == (1, None, 0)


@pytest.mark.parametrize(
    ("limit", "what"),
    [
        ("request_queue_limit_per_worker", "may hold 2 waiting requests with 2 workers, and holds 2"),
        (
            "raw_isl_token_queue_limit_per_worker",
            "may hold 2 waiting prompt tokens with 2 workers, and holds 200",
        ),
        (
            "cached_token_queue_limit_per_worker",
            "may hold 2 waiting cached tokens with 2 workers, and holds 20",
        ),
    ],
)
def test_a_full_class_ends_the_run_and_says_which_limit_to_raise(limit: str, what: str) -> None:
    spec = profile({"name": "l", "policy_family": "latency", "cache_bucket": "any", "quantum": 1, limit: 1})
    queue = queue_of(spec)
    for _ in range(2):
        queue.push(queue.classes[0], arrival(100, cached=10), workers=200)
    with pytest.raises(SimulationError, match=f"class 'l' {what}.*raise its {limit}"):
        queue.push(queue.classes[0], arrival(100, cached=10), workers=2)
