"""Synthetic load (`spec 08, 10`)."""

from __future__ import annotations

import pytest

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.workload import SyntheticWorkload
from dynamo_sim.workload.build import build_source

FIELDS = {
    "kind": "synthetic",
    "input_tokens": 16,
    "output_tokens": 4,
    "request_count": 4,
    "arrival_interval_ms": 10.0,
}


def build(engine_block_size=4, concurrency=None, ticks=False, single_worker=False, **fields):
    return build_source(
        SyntheticWorkload.model_construct(**{**FIELDS, **fields}),  # unchecked
        engine_block_size=engine_block_size,
        concurrency=concurrency,
        ticks=ticks,
        single_worker=single_worker,
    )


def drain(source, service_ms=1.0):
    taken = []
    while not source.exhausted():
        now = source.next_ms()
        for request in source.take_due(0.0 if now is None else now, 0):
            taken.append(request)
            source.ended(request, request.arrival_ms + service_ms, False)
    return taken


def test_plain_arrivals_are_products():
    taken = drain(build(arrival_interval_ms=0.1, request_count=40, arrival_speedup_ratio=3.0))
    assert [r.arrival_ms for r in taken] == [k * 0.1 / 3.0 for k in range(40)]
    assert all(r.prompt is None and r.session_id is None for r in taken)


def test_session_starts_are_running_sums():
    taken = drain(
        build(arrival_interval_ms=0.1, request_count=40, arrival_speedup_ratio=3.0, num_prefix_groups=1)
    )
    expected, start = [], 0.0
    for _ in range(40):
        expected.append(start / 3.0)
        start += 1000.0 / (1000.0 / 0.1)
    assert [r.arrival_ms for r in taken] == expected
    assert [r.session_id for r in taken][:2] == ["session_0", "session_1"]
    assert expected != [k * 0.1 / 3.0 for k in range(40)]


def test_an_interval_of_zero_is_a_burst():
    for groups in (0, 1):
        taken = drain(build(arrival_interval_ms=0.0, num_prefix_groups=groups))
        assert [r.arrival_ms for r in taken] == [0.0] * 4


def test_plain_load_in_a_closed_loop_is_capped_by_requests():
    source = build(concurrency=3)
    assert len(source.take_due(0.0, 0)) == 3
    assert source.take_due(5.0, 3) == []


def test_shared_beginnings_are_the_same_in_all_requests():
    """`spec 08, 13`, E6: 13 tokens, block 4, ratio 0.5: two of four blocks."""
    taken = drain(build(input_tokens=13, shared_prefix_ratio=0.5, num_prefix_groups=3))
    assert taken[2].prompt == ((0, 4), (1, 4), (5, 4), (6, 1))
    assert all(r.prompt[:1] == ((0, 4),) for r in taken)
    assert taken[0].prompt == ((0, 4), (1, 8), (2, 1))  # the counter begins with the number of a shared block
    assert all(sum(length for _, length in r.prompt) == 13 for r in taken)


def test_a_prompt_may_be_shared_as_a_whole():
    taken = drain(build(input_tokens=14, shared_prefix_ratio=1.0, num_prefix_groups=1))
    assert {r.prompt for r in taken} == {((0, 4), (1, 4), (2, 4), (3, 2))}


def test_without_groups_nothing_is_shared():
    assert {r.prompt for r in drain(build(shared_prefix_ratio=0.5))} == {None}


def test_turns_wait_for_the_delay_and_share_only_the_beginning():
    taken = drain(
        build(
            request_count=1,
            turns_per_session=3,
            inter_turn_delay_ms=7.0,
            shared_prefix_ratio=0.5,
            num_prefix_groups=1,
        )
    )
    assert [(r.turn_index, r.arrival_ms) for r in taken] == [(0, 0.0), (1, 8.0), (2, 16.0)]
    assert [r.prompt[2:] for r in taken[1:]] == [((3, 4), (4, 4)), ((5, 4), (6, 4))]


def test_the_speed_up_divides_delays_but_not_in_a_closed_loop():
    delayed = {
        "request_count": 1,
        "turns_per_session": 2,
        "inter_turn_delay_ms": 9.0,
        "arrival_speedup_ratio": 3.0,
    }
    assert drain(build(**delayed))[1].arrival_ms == 4.0
    assert drain(build(**delayed, concurrency=1))[1].arrival_ms == 10.0


def test_with_ticks_even_plain_load_is_sessions_and_the_cap_only_stops_the_speed_up():
    open_loop = drain(build(ticks=True, arrival_speedup_ratio=2.0))
    capped = drain(build(ticks=True, arrival_speedup_ratio=2.0, concurrency=1))
    assert [r.arrival_ms for r in open_loop] == [0.0, 5.0, 10.0, 15.0]
    assert [r.arrival_ms for r in capped] == [0.0, 10.0, 20.0, 30.0]
    assert capped[0].session_id == "session_0"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"input_tokens": 0}, "input_tokens must be at least 1"),
        ({"output_tokens": 0}, "output_tokens must be at least 1"),
        ({"request_count": 0}, "request_count must be at least 1"),
        ({"arrival_interval_ms": -1.0}, "arrival_interval_ms must be a finite non-negative number, got -1"),
        ({"arrival_interval_ms": float("inf"), "concurrency": 1}, "arrival_interval_ms must be a finite"),
        ({"arrival_speedup_ratio": 0.0}, "arrival_speedup_ratio must be a finite positive number, got 0"),
        ({"arrival_speedup_ratio": 0.0, "turns_per_session": 2}, "ratio must be a finite positive number"),
        ({"concurrency": 0}, "replay_concurrency must be at least 1"),
        ({"num_prefix_groups": 1, "turns_per_session": 0}, "turns_per_session must be at least 1"),
        ({"turns_per_session": 2, "inter_turn_delay_ms": -1.0}, "inter_turn_delay_ms must be a finite"),
        ({"shared_prefix_ratio": 1.5}, "shared_prefix_ratio must be between 0.0 and 1.0, got 1.5"),
        ({"turns_per_session": 0, "ticks": True}, "turns_per_session must be at least 1"),
        ({"arrival_interval_ms": 1e308}, "the last arrival is infinitely late"),
        ({"arrival_speedup_ratio": 1e-308}, "divided by arrival_speedup_ratio=1e-308"),
        ({"arrival_interval_ms": 1e308, "turns_per_session": 2}, "the last arrival is infinitely late"),
        (
            {"turns_per_session": 2, "inter_turn_delay_ms": 1e9, "arrival_speedup_ratio": 1e-300},
            "the pause before a turn is infinitely late",
        ),
        (
            {"input_tokens": 2**31 - 1, "shared_prefix_ratio": 0.1, "num_prefix_groups": 1},
            "workload.input_tokens: found 2147483647; must be at most 67108864",
        ),
    ],
)
def test_parameters_out_of_range(fields, text):
    with pytest.raises(ScenarioError) as error:
        build(**fields)
    assert text in str(error.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"turns_per_session": 0},
        {"shared_prefix_ratio": -1.0},
        {"inter_turn_delay_ms": -1.0},
        {"arrival_speedup_ratio": 0.0, "concurrency": 2},
    ],
)
def test_what_the_reference_leaves_unchecked_passes(fields):
    assert len(drain(build(**fields))) == 4
