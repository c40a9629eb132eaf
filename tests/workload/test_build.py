"""Which source a trace becomes (`spec 08, 2 and 3`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from dynamo_sim.errors import ScenarioError
from dynamo_sim.workload.build import build_source
from dynamo_sim.workload.plain_list import OpenList
from dynamo_sim.workload.sessions import SessionDriver
from dynamo_sim.workload.workflows import WorkflowDriver


@dataclass
class Trace:
    kind: str = "trace"
    path: str | None = None
    records: list[Any] | None = field(default_factory=list)
    format: str = "mooncake"
    trace_block_size: int | None = 4
    shared_prefix_ratio: float = 0.0
    num_prefix_groups: int = 0
    arrival_speedup_ratio: float = 1.0
    columns: Any = None
    time_unit: str | None = None
    skip_bad_lines: bool = False


SINGLE = (
    {"timestamp": 100, "output_length": 2, "hash_ids": [1]},
    {"timestamp": 40, "output_length": 2, "hash_ids": [2]},
)
TWO_TURNS = ({"timestamp": 7, "output_length": 2, "hash_ids": [1], "session_id": "a"},
             {"timestamp": 37, "output_length": 2, "hash_ids": [2], "session_id": "a"})  # fmt: skip
WORKFLOW = ({"request_id": "a", "timestamp": 4, "output_length": 2, "hash_ids": [1]},
            {"request_id": "b", "wait_for": ["a"], "delay": 30, "output_length": 2, "hash_ids": [1]})  # fmt: skip
LOOP = ({"num_turns": 0, "input_prompt_length": 5, "assistant_response_length": [], "tool_call_output_length": [],
         "tool_call_latency": [], "final_assistant_response_length": 1},)  # fmt: skip


def recorded(session=None):
    record = {
        "schema": "dynamo.request.trace.v1", "event_type": "request_end", "event_time_unix_ms": 5,
        "request": {"request_id": "a", "request_received_ms": 4, "output_tokens": 1,
                    "replay": {"trace_block_size": 4, "input_length": 3, "input_sequence_hashes": [7]}},
    }  # fmt: skip
    return (record if session is None else {**record, "agent_context": {"session_id": session}},)


def build(
    records, concurrency=None, ticks=False, single_worker=False, honour=False, disaggregated=False, **fields
):
    return build_source(
        replace(Trace(), records=list(records), **fields),
        engine_block_size=4,
        concurrency=concurrency,
        ticks=ticks,
        single_worker=single_worker,
        honour_cap_with_ticks=honour,
        disaggregated=disaggregated,
    )


@pytest.mark.parametrize(
    ("records", "options", "kind"),
    [
        (SINGLE, {}, OpenList),
        (SINGLE, {"format": "mooncake-delta"}, OpenList),
        (recorded(), {"format": "dynamo", "trace_block_size": None}, OpenList),
        (TWO_TURNS, {}, SessionDriver),
        (SINGLE, {"concurrency": 1}, SessionDriver),
        (SINGLE, {"ticks": True}, SessionDriver),
        (LOOP, {"format": "applied_compute_agentic", "concurrency": 1}, SessionDriver),
        (WORKFLOW, {"format": "agentic-mooncake"}, WorkflowDriver),
        (recorded("p"), {"format": "dynamo"}, WorkflowDriver),
    ],
)
def test_the_path_of_a_trace(records, options, kind):
    assert type(build(records, **options)) is kind


def test_single_sessions_are_sorted_and_shifted():
    source = build(SINGLE, arrival_speedup_ratio=2.0)
    taken = source.take_due(1e9, 0)
    assert [(r.index, r.arrival_ms, r.session_id) for r in taken] == [(1, 0.0, None), (0, 30.0, None)]


def test_the_speed_up_divides_delays_of_conversations():
    source = build(TWO_TURNS, arrival_speedup_ratio=4.0)
    source.ended(source.take_due(0.0, 0)[0], 10.0, False)
    assert source.next_ms() == 17.5


def test_a_closed_loop_ignores_the_speed_up():
    source = build(TWO_TURNS, concurrency=1, arrival_speedup_ratio=0.0)
    source.ended(source.take_due(0.0, 0)[0], 10.0, False)
    assert source.next_ms() == 40.0


def test_ticks_ignore_the_cap_and_a_cap_stops_the_speed_up():
    many = [{"timestamp": t, "output_length": 1, "hash_ids": [t]} for t in (6, 8, 10)]
    source = build(many, ticks=True, concurrency=1, arrival_speedup_ratio=0.0)
    assert [r.arrival_ms for r in source.take_due(100.0, 99)] == [0.0, 2.0, 4.0]
    source = build(many, ticks=True, arrival_speedup_ratio=2.0)
    assert [r.arrival_ms for r in source.take_due(100.0, 99)] == [0.0, 1.0, 2.0]


def test_the_cap_can_be_honoured_with_ticks():
    source = build(SINGLE, ticks=True, concurrency=1, honour=True)
    (first,) = source.take_due(0.0, 0)
    source.ended(first, 5.0, False)
    assert source.next_ms() == 5.0


def test_only_closed_loops_of_one_worker_stamp_arrivals_when_taken():
    assert build(TWO_TURNS, single_worker=True).take_due(5.0, 0)[0].arrival_ms == 0.0
    assert build(TWO_TURNS, single_worker=True, concurrency=1).take_due(5.0, 0)[0].arrival_ms == 5.0
    assert build(TWO_TURNS, concurrency=1).take_due(5.0, 0)[0].arrival_ms == 0.0


def test_workflow_times_are_divided():
    source = build(WORKFLOW, format="agentic_mooncake", arrival_speedup_ratio=3.0)
    source.ended(source.take_due(0.0, 0)[0], 2.0, False)
    assert source.next_ms() == 12.0


@pytest.mark.parametrize(
    ("records", "options", "text"),
    [
        (SINGLE, {"concurrency": 0}, "replay_concurrency must be at least 1"),
        (SINGLE, {"arrival_speedup_ratio": 0.0}, "ratio must be a finite positive number, got 0"),
        (SINGLE, {"format": "mooncake2"}, "got 'mooncake2'"),
        (SINGLE, {"arrival_speedup_ratio": 1e-308}, "the arrival of a session is infinitely late"),
        (TWO_TURNS, {"arrival_speedup_ratio": 1e-308}, "the pause before a turn is infinitely late"),
        (
            WORKFLOW,
            {"format": "agentic_mooncake", "arrival_speedup_ratio": 1e-308},
            "the pause before a request is infinitely late",
        ),
        (SINGLE, {"trace_block_size": 0}, "trace_block_size must be greater than 0"),
        (LOOP, {"format": "applied_compute_agentic"}, "requires replay_concurrency because source traces"),
        (
            LOOP,
            {"format": "applied_compute_agentic", "concurrency": 1, "shared_prefix_ratio": 1.5},
            "shared_prefix_ratio must be between 0.0 and 1.0, got 1.5",
        ),
        (
            WORKFLOW,
            {"format": "agentic_mooncake", "concurrency": 1},
            "agentic_mooncake trace format is not supported with replay_concurrency",
        ),
        (
            WORKFLOW,
            {"format": "agentic_mooncake", "disaggregated": True},
            "agentic_mooncake trace format is not supported for disaggregated replay",
        ),
        (WORKFLOW, {"format": "agentic_mooncake", "arrival_speedup_ratio": -1.0}, "ratio must be"),
        (
            SINGLE,
            {"format": "mooncake_delta", "disaggregated": True},
            "mooncake-delta trace format is not supported for disaggregated replay",
        ),
        (
            recorded("p"),
            {"format": "dynamo", "concurrency": 1},
            "agentic Dynamo request traces are not supported with replay_concurrency",
        ),
        (
            recorded("p"),
            {"format": "dynamo", "disaggregated": True},
            "agentic Dynamo request traces are not supported for disaggregated replay",
        ),
    ],
)
def test_what_does_not_go_together(records, options, text):
    with pytest.raises(ScenarioError) as error:
        build(records, **options)
    assert text in str(error.value)


def test_shared_prefixes_are_not_checked_for_other_formats():
    assert build(SINGLE, shared_prefix_ratio=-3.0).total == 2


def test_skipped_lines_are_available_afterwards(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('oops\n{"timestamp": 0, "output_length": 1, "hash_ids": [1]}\n')
    source = build((), path=str(path), skip_bad_lines=True)
    assert source.total == 1
    assert [(skip.file, skip.line) for skip in source.skipped] == [(str(path), 1)]
