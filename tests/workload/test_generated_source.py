"""Generated workloads as a whole: independent streams, shared prefixes, closed loops, controllers, traces."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.random_streams import stream
from dynamo_sim.scenario import Scenario
from dynamo_sim.scenario.effects import notes
from dynamo_sim.simulation import run
from dynamo_sim.workload.build import build_source
from tests.workload.generated_loads import requests, scenario

POISSON = {"shape": "poisson", "rate_rps": 50}
LOGNORMAL = {"lognormal": {"median": 200, "p95": 900}}


def times(load: Scenario, **how: Any) -> list[float]:
    return [request.arrival_ms for request in requests(load, **how)]


def test_streams_of_other_names_or_seeds_have_nothing_in_common() -> None:
    draws = {
        (seed, name): stream(seed, name).random()
        for seed in (0, 1, 2**32, 2**63 - 1)
        for name in ("a", "b", "workload/arrivals")
    }
    assert len(set(draws.values())) == len(draws)
    assert draws[0, "a"] == stream(0, "a").random()


def test_the_bits_of_a_stream_are_pinned() -> None:
    assert stream(7, "workload/arrivals").integers(0, 2**63, 3).tolist() == [
        8967950702558306670,
        5471933925093907762,
        6720662196975595932,
    ]


def test_lengths_never_change_arrivals() -> None:
    plain = scenario(POISSON, request_count=500)
    random = scenario(
        POISSON, request_count=500, input_tokens=LOGNORMAL, output_tokens=LOGNORMAL, shared_prefix_ratio=0.5
    )
    assert times(plain) == times(random)


def test_prompts_never_change_answers() -> None:
    one = scenario(POISSON, request_count=500, output_tokens=LOGNORMAL)
    other = scenario(
        POISSON, request_count=500, input_tokens={"uniform": {"min": 1, "max": 9}}, output_tokens=LOGNORMAL
    )
    assert [r.output_tokens for r in requests(one)] == [r.output_tokens for r in requests(other)]


def test_a_controller_changes_nothing_about_the_requests() -> None:
    load = scenario(POISSON, request_count=300, input_tokens=LOGNORMAL)
    assert [vars_of(r) for r in requests(load)] == [vars_of(r) for r in requests(load, ticks=True)]


def vars_of(request: Any) -> list[Any]:
    return [getattr(request, name) for name in request.__slots__]


def test_requests_are_numbered_and_in_order() -> None:
    taken = requests(scenario(POISSON, request_count=300))
    assert [request.index for request in taken] == list(range(300))
    assert all(type(request.arrival_ms) is float and type(request.input_tokens) is int for request in taken)


# ---------------------------------------------------------------- shared prefixes


def shared_tokens(one: Any, other: Any) -> int:
    """Leading tokens that two prompts have in common."""
    expanded = [np.repeat(*zip(*request.prompt, strict=True)) for request in (one, other)]
    shorter = min(map(len, expanded))
    different = np.flatnonzero(expanded[0][:shorter] != expanded[1][:shorter])
    return int(different[0]) if different.size else shorter


def test_without_sharing_prompts_have_no_content() -> None:
    assert all(request.prompt is None for request in requests(scenario(POISSON, request_count=5)))


def test_prompts_share_their_part_and_no_more() -> None:
    load = scenario(
        POISSON, request_count=6, shared_prefix_ratio=0.3, input_tokens={"uniform": {"min": 50, "max": 400}}
    )
    taken = requests(load)
    for request in taken:
        assert sum(length for _, length in request.prompt or ()) == request.input_tokens
    for one in taken:
        for other in taken:
            if one is not other:
                shorter = min(one.input_tokens, other.input_tokens)
                assert shared_tokens(one, other) == round(0.3 * shorter)


def test_groups_share_nothing_with_each_other() -> None:
    taken = requests(scenario(POISSON, request_count=400, shared_prefix_ratio=0.5, num_prefix_groups=4))
    groups: dict[int, list[Any]] = {}
    for request in taken:
        groups.setdefault(request.prompt[0][0], []).append(request)  # type: ignore[index]
    assert sorted(groups) == [0, 1, 2, 3]
    assert all(60 < len(members) < 140 for members in groups.values())
    assert shared_tokens(groups[0][0], groups[0][1]) == 50
    assert shared_tokens(groups[0][0], groups[1][0]) == 0


def test_a_ratio_of_one_makes_equal_prompts_of_a_group() -> None:
    one, other = requests(scenario(POISSON, request_count=2, shared_prefix_ratio=1))
    assert one.prompt == other.prompt
    assert PrefixInterner(16).blocks(one.prompt or ()) != []


def test_shared_prefixes_are_found_in_the_cache() -> None:
    load = scenario(POISSON, request_count=200, input_tokens=640, shared_prefix_ratio=0.5)
    reused = run(load).requests["reused_tokens"]
    assert (reused > 0).mean() > 0.9
    assert reused.max() <= 320


# ---------------------------------------------------------------- closed loops


def test_a_closed_loop_uses_lengths_only() -> None:
    closed = {"limits": {"concurrency": 3}}
    one = scenario(None, top=closed, request_count=40, input_tokens=LOGNORMAL)
    other = scenario(POISSON, top=closed, request_count=40, duration_s=0.1, input_tokens=LOGNORMAL)
    first, second = run(one).requests, run(other).requests
    assert len(first) == 40
    assert first["arrival_ms"].tolist() == second["arrival_ms"].tolist()
    assert (first["arrival_ms"] == 0).sum() == 3
    assert notes(one) == []
    assert notes(other) == [
        "workload.arrivals: not applied in a closed loop",
        "workload.duration_s: not applied in a closed loop",
    ]


def test_a_closed_loop_stays_one_with_a_controller() -> None:
    load = scenario(
        None, top={"limits": {"concurrency": 3}, "scaling": [{"at_ms": 50, "workers": 2}]}, request_count=40
    )
    rows = run(load).requests
    assert len(rows) == 40
    assert (rows["arrival_ms"] == 0).sum() == 3


# ---------------------------------------------------------------- traces at other times


def trace(folder: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    (folder / "trace.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return {"shape": "retimed", "path": "trace.jsonl", "profile": {"shape": "constant", "rate_rps": 10}}


SINGLE = [
    {"timestamp": 900, "input_length": 700, "output_length": 3, "hash_ids": [1, 2]},
    {"timestamp": 100, "input_length": 600, "output_length": 4, "hash_ids": [1, 3]},
    {"timestamp": 500, "input_length": 500, "output_length": 5, "hash_ids": [4]},
]


def test_a_retimed_trace_keeps_order_lengths_and_prompts(tmp_path: Path) -> None:
    taken = requests(scenario(trace(tmp_path, SINGLE), tmp_path))
    assert [request.arrival_ms for request in taken] == [0.0, 100.0, 200.0]
    assert [request.index for request in taken] == [1, 2, 0]
    assert [request.output_tokens for request in taken] == [4, 5, 3]
    assert taken[0].prompt == ((1, 512), (3, 88))


def test_a_trace_without_times_keeps_the_order_of_its_lines(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "timestamp"} for row in SINGLE]
    assert [r.index for r in requests(scenario(trace(tmp_path, rows), tmp_path))] == [0, 1, 2]


def test_a_retimed_trace_may_be_cut(tmp_path: Path) -> None:
    arrivals = trace(tmp_path, SINGLE)
    assert len(requests(scenario(arrivals, tmp_path, request_count=2))) == 2
    assert len(requests(scenario(arrivals, tmp_path, duration_s=0.1))) == 1
    with pytest.raises(TraceError, match="has 3 requests, fewer than the 4 of request_count"):
        requests(scenario(arrivals, tmp_path, request_count=4))


def test_retimed_conversations_keep_their_pauses(tmp_path: Path) -> None:
    rows = [
        {"session_id": "a", "timestamp": 70, "input_length": 9, "output_length": 1, "hash_ids": [1]},
        {"session_id": "b", "timestamp": 0, "input_length": 9, "output_length": 1, "hash_ids": [2]},
        {"session_id": "a", "delay": 30, "input_length": 9, "output_length": 1, "hash_ids": [1]},
    ]
    taken = requests(scenario(trace(tmp_path, rows), tmp_path, arrival_speedup_ratio=2))
    assert [(r.session_id, r.turn_index, r.arrival_ms) for r in taken] == [
        ("b", 0, 0.0),
        ("a", 0, 50.0),
        ("a", 1, 65.0),
    ]


def test_tool_loops_get_the_start_times_they_lack(tmp_path: Path) -> None:
    row = {
        "num_turns": 0,
        "input_prompt_length": 40,
        "assistant_response_length": [],
        "tool_call_output_length": [],
        "tool_call_latency": [],
        "final_assistant_response_length": 5,
    }
    arrivals = {**trace(tmp_path, [row, row]), "format": "applied_compute_agentic"}
    assert [request.arrival_ms for request in requests(scenario(arrivals, tmp_path))] == [0.0, 100.0]


def test_a_trace_whose_requests_wait_for_each_other_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="format: found 'agentic_mooncake'; must be one of"):
        scenario({**trace(tmp_path, SINGLE), "format": "agentic_mooncake"}, tmp_path)


def test_a_retimed_trace_in_a_closed_loop_needs_no_count(tmp_path: Path) -> None:
    load = scenario(trace(tmp_path, SINGLE), tmp_path, {"limits": {"concurrency": 1}})
    assert len(run(load).requests) == 3
    assert notes(load) == ["workload.arrivals.profile: not applied in a closed loop"]


# ---------------------------------------------------------------- cost


def test_three_hundred_thousand_requests_are_ready_at_once() -> None:
    load = scenario(
        {"shape": "diurnal", "mean_rps": 300, "amplitude": 0.9, "period_s": 100},
        duration_s=1000,
        input_tokens=LOGNORMAL,
        output_tokens=LOGNORMAL,
        shared_prefix_ratio=0.5,
        num_prefix_groups=10,
    )
    begun = time.process_time()
    source = build_source(load.workload, engine_block_size=16, seed=1)
    assert time.process_time() - begun < 1.0
    assert source.total == pytest.approx(300_000, rel=0.01)
