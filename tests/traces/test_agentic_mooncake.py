"""`agentic_mooncake`: requests that wait for requests (`spec 08, 8`)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_sim.errors import TraceError
from dynamo_sim.traces.cycles import find_cycle
from dynamo_sim.traces.formats import read_trace
from dynamo_sim.workload.turns import TraceTurns

TOOL = {
    "tool_call_id": "t", "tool_class": "c", "status": "s", "duration_ms": 1.5, "started_at_unix_ms": 1,
    "ended_at_unix_ms": 2, "other": None,
}  # fmt: skip


def row(name, *waits, **fields):
    record = {"request_id": name, "input_length": 8, "output_length": 1, "hash_ids": [1, 2], **fields}
    return {**record, "wait_for": list(waits)} if waits else record


def read(*rows, **options):
    return read_trace(list(rows), "agentic_mooncake", 4, **options)


def test_the_origin_is_the_smallest_time_of_all_rows():
    """`spec 08, 13`, E5."""
    workflow = read(row("a", timestamp=100), row("b", "a", timestamp=40, delay=10), row("c"))
    assert workflow.starts == [60.0, 0.0, None]
    assert workflow.wait_ms == [0.0, 10.0, 0.0]
    assert workflow.waits_for == [(), (0,), ()]


def test_rows_may_wait_for_later_lines_and_repetitions_do_not_count():
    workflow = read(row("a", "b", "c", "b"), row("b"), row("c"))
    assert workflow.waits_for == [(1, 2), (), ()]


def test_the_pause_is_the_sum_of_both_parts():
    assert read(row("a", delay=-1, tool_wait_ms=3.5)).wait_ms == [2.5]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([row("  ")], "trace line 1 has empty request_id"),
        ([{"output_length": 1, "hash_ids": [1]}], "missing field request_id"),
        ([row("a"), row("a")], "trace line 2 duplicates request_id a"),
        ([row("b", "z")], "request b waits for unknown request_id z"),
        ([row("a", "a")], "request a cannot wait for itself"),
        ([row("a", "b"), row("b", "a")], "cycle detected at request a"),
        (
            [row("a", input_length=9)],
            "trace line 1 has input_length 9 but only 8 tokens can be synthesized from 2 hash_ids at "
            "trace_block_size 4",
        ),
        ([row("a", timestamp=-1)], "trace line 1 has invalid timestamp -1"),
        ([row("a", delay=-1)], "trace line 1 has invalid dependency delay -1"),
        ([row("a", delay=1, tool_wait_ms=-2.5)], "trace line 1 has invalid dependency delay -1.5"),
        ([{**row("a"), "wait_for": "b"}], "wait_for must be a list of request ids"),
        ([row("a", request_kind=1)], "request_kind must be a text, found 1"),
        ([row("a", branches=None)], "branches must be a list of request ids, found null"),
        ([row("a", prefix_reset="x")], "prefix_reset must be true or false, found the text 'x'"),
        ([row("a", tool_events=[7])], "tool_events must be a list of objects"),
        ([row("a", tool_events=[{**TOOL, "status": None}])], "missing field status"),
        ([row("a", tool_events=[{**TOOL, "output_tokens": 1.5}])], "output_tokens must be a whole number"),
        ([row("a", tool_events=[{**TOOL, "duration_ms": "1"}])], "duration_ms must be a finite number"),
        ([row("a", output_token_ids=[])], "output_length 1 does not match output_token_ids length 0"),
    ],
)
def test_errors(rows, text):
    with pytest.raises(TraceError) as error:
        read(*rows)
    assert text in str(error.value)
    assert error.value.line is not None


def test_the_cycle_is_named_where_the_search_meets_an_open_row():
    rows = [row("a"), row("b", "c"), row("c", "d", "a"), row("d", "c")]
    with pytest.raises(TraceError, match="cycle detected at request c"):
        read(*rows)


def test_fields_without_effect_may_be_given():
    extras = {"request_kind": None, "branches": ["z"], "prefix_reset": True, "tool_events": [TOOL, TOOL]}
    assert len(read(row("a", **extras)).turns) == 1


def test_an_empty_prompt_is_accepted():
    rows = row("a", input_length=0), {"request_id": "b", "output_length": 1, "hash_ids": []}
    turns = TraceTurns(read(*rows).turns)
    assert turns.runs_of(0) == turns.runs_of(1) == ()


def test_skipping_a_line_skips_what_waits_for_it():
    workflow = read(
        row("a", delay=-1), row("b", "a"), row("c", "b"), row("d"), row("e", "f"), row("f", "e"),
        skip_bad_lines=True,
    )  # fmt: skip
    assert len(workflow.turns) == 1
    assert sorted(skip.line for skip in workflow.skipped) == [1, 2, 3, 5, 6]


@given(st.lists(st.lists(st.integers(0, 6), max_size=3), min_size=7, max_size=7))
def test_cycles_are_found_exactly_where_there_are_some(waits_for):
    reached = [set(waits) for waits in waits_for]
    for _ in range(7):
        reached = [seen | {far for row in seen for far in reached[row]} for seen in reached]
    on_a_cycle = {row for row, seen in enumerate(reached) if row in seen}
    found = find_cycle(waits_for)
    assert (found is None) == (not on_a_cycle)
    assert found is None or found in on_a_cycle


@given(st.lists(st.lists(st.integers(0, 9), max_size=2), min_size=8, max_size=8))
def test_what_is_left_without_bad_lines_waits_for_nothing_that_is_missing(waits_for):
    """Skipped in one pass over the trace are the rows that skipping again and again would skip."""
    records = [row(str(number), *map(str, waits)) for number, waits in enumerate(waits_for)]
    left = set(range(8))
    while True:
        bad = {row for row in left if set(waits_for[row]) - left or row in waits_for[row]}
        cycle = None if bad else find_cycle([waits_for[row] if row in left else () for row in range(8)])
        if not bad and cycle is None:
            break
        left -= bad or {cycle}
    if left:
        workflow = read(*records, skip_bad_lines=True)
        assert {skip.line - 1 for skip in workflow.skipped} == set(range(8)) - left


def test_skipping_many_cycles_takes_no_time_worth_mentioning():
    pairs = [(f"a{n}", f"b{n}") for n in range(2000)]
    records = [row(one, other) for pair in pairs for one, other in (pair, pair[::-1])]
    begin = time.process_time()
    workflow = read(*records, row("last"), skip_bad_lines=True)
    assert time.process_time() - begin < 1.0
    assert len(workflow.turns) == 1 and len(workflow.skipped) == 4000
