"""`mooncake` and `mooncake-delta`: reading rows into conversations (`spec 08, 5`)."""

from __future__ import annotations

import pytest

from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.traces.formats import read_trace
from dynamo_sim.workload.trace_source import check_closed, schedule_open
from dynamo_sim.workload.turns import TraceTurns


def row(*ids, **fields):
    return {"output_length": 2, "hash_ids": list(ids or (1, 2)), **fields}


def read(*rows, **options):
    return read_trace(list(rows), trace_block_size=4, **options)


def turns_of(*rows):
    return TraceTurns(read(*rows).turns)


def refusal(*rows):
    with pytest.raises(TraceError) as error:
        read(*rows)
    return str(error.value)


def test_the_length_is_cut_to_what_the_ids_hold():
    """`spec 08, 13`, E1."""
    turns = turns_of(row(1, 2, input_length=100), row(1, 2, 3, input_length=3), row(1, 2))
    assert [turns.input_tokens(i) for i in range(3)] == [8, 3, 8]
    assert [turns.runs_of(i) for i in range(3)] == [((1, 4), (2, 4)), ((1, 3),), ((1, 4), (2, 4))]


def test_aliases():
    content = read(
        {"created_time": 5, "input_tokens": 6, "output_tokens": 3, "hash_ids": [1, 2], "session_id": "a"},
        {"output_tokens": 1, "hash_ids": [1], "session_id": "a", "delay_ms": 7},
    )
    assert content.starts == [5.0]
    assert list(content.delays) == [0.0, 7.0]
    assert (content.turns.input_tokens(0), content.turns.output_tokens(0)) == (6, 3)


def test_ids_count_modulo_two_to_the_32():
    turns = turns_of(row(1 + 2**32, 2**64 - 1), row(7, 7, input_length=6))
    assert turns.runs_of(0) == ((1, 4), (2**32 - 1, 4))
    assert turns.runs_of(1) == ((7, 6),)


def test_inferred_delays():
    """`spec 08, 13`, E2: a row with a stated delay moves the reference time only if it has a timestamp."""
    content = read(
        row(session_id="s", timestamp=50), row(session_id="s", delay=3), row(session_id="s", timestamp=90)
    )
    assert list(content.delays) == [0.0, 3.0, 40.0]
    content = read(
        row(session_id="s", timestamp=50),
        row(session_id="s", delay=3, timestamp=70),
        row(session_id="s", timestamp=90),
        row(session_id="s"),
    )
    assert list(content.delays) == [0.0, 3.0, 20.0, 0.0]


def test_a_row_may_continue_a_session_named_after_a_line():
    content = read(row(timestamp=0), row(timestamp=5), row(timestamp=9, session_id="request_1"))
    assert content.names == ["request_1", "request_2"]
    assert content.rows == [[0, 2], [1]]
    assert list(content.delays) == [0.0, 0.0, 9.0]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([{"output_length": 1}], "trace line 1 is missing hash_ids"),
        ([{"hash_ids": [1]}], "trace line 1 is missing output_length"),
        ([row(output_token_ids=[1, 2, 3])], "output_length 2 does not match output_token_ids length 3"),
        ([row(delay=5)], "trace line 1 sets delay on the first turn of session request_1"),
        ([row(session_id="a"), row(session_id="a", delay=-7)], "trace line 2 has invalid delay -7 "),
        (
            [row(session_id="a", timestamp=50), row(session_id="a", timestamp=39.5)],
            "trace line 2 has invalid delay -10.5 ",
        ),
        (
            [row(session_id="a"), row(session_id="a", timestamp=4)],
            "trace line 2 for session a cannot infer delay without a previous timestamp",
        ),
        ([row(input_length=0)], "session request_1 turn 0 must have a positive input_length"),
        (
            [{"output_length": 1, "hash_ids": []}],
            "session request_1 turn 0 must have a positive input_length",
        ),
    ],
)
def test_errors_of_a_row(rows, text):
    assert text in refusal(*rows)


def test_a_delay_of_zero_is_allowed_on_a_first_turn():
    assert list(read(row(delay=0)).delays) == [0.0]


def test_output_of_zero_tokens_is_read():
    assert read(row(output_length=0)).turns.output_tokens(0) == 0


def test_times_are_shifted_then_divided():
    content = read(row(timestamp=-5), row(timestamp=2.5), row(timestamp=100, session_id="request_1"))
    assert list(schedule_open(content, 3.0)) == [0.0, 7.5 / 3.0]
    assert list(content.delays) == [0.0, 0.0, 105.0 / 3.0]


def test_an_open_loop_needs_a_time_for_every_session():
    with pytest.raises(
        TraceError, match="requires first_arrival_timestamp_ms for session request_2"
    ) as error:
        schedule_open(read(row(timestamp=0), row()), 1.0)
    assert error.value.line == 2


def test_sessions_without_a_time_are_skipped_with_all_their_lines():
    content = read(row(session_id="a"), row(timestamp=3), row(session_id="a", delay=1))
    assert list(schedule_open(content, 1.0, skip_bad_lines=True)) == [0.0]
    assert content.names == ["request_2"]
    assert [skip.line for skip in content.skipped] == [1, 3]


@pytest.mark.parametrize("ratio", [0.0, -1.0, float("inf"), float("nan")])
def test_speed_ups_must_be_finite_and_positive(ratio):
    with pytest.raises(ScenarioError, match="ratio must be a finite positive number"):
        schedule_open(read(row(timestamp=0)), ratio)


def test_a_closed_loop_refuses_times_below_zero():
    with pytest.raises(TraceError, match="session request_1 has invalid first_arrival_timestamp_ms -5"):
        check_closed(read(row(timestamp=-5), row()))
    content = read(row(timestamp=-5), row())
    check_closed(content, skip_bad_lines=True)
    assert content.names == ["request_2"]


def test_what_the_router_reads_is_kept():
    request = turns_of(row(priority=-3, strict_priority=2, policy_class="x")).request(0, 1.5)
    assert (request.priority, request.strict_priority, request.policy_class) == (-3, 2, "x")
    assert request.arrival_ms == 1.5
    assert turns_of(row(output_token_ids=[9, 8])).request(0, 0.0).planned_output == (9, 8)
