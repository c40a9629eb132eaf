"""Sources: who arrives when (`spec 08, 2, 6, 7 and 9`)."""

from __future__ import annotations

import pytest

from dynamo_sim.errors import SimulationError
from dynamo_sim.traces.formats import read_trace
from dynamo_sim.traces.turn_table import TurnTable
from dynamo_sim.workload.plain_list import CappedList, OpenList
from dynamo_sim.workload.request import MIN_UNIQUE_TOKEN
from dynamo_sim.workload.sessions import SessionDriver
from dynamo_sim.workload.trace_source import schedule_open, sessions_of
from dynamo_sim.workload.turns import TraceTurns
from dynamo_sim.workload.workflows import WorkflowDriver


def row(*ids, **fields):
    return {"output_length": 2, "hash_ids": list(ids or (1,)), **fields}


def sessions(*rows):
    return sessions_of(read_trace(list(rows), "mooncake", 4))


def increments(*rows):
    return read_trace(list(rows), "mooncake-delta", 4)


def table(count):
    turns = TurnTable(4)
    for number in range(count):
        turns.add(turns.store_ids([number]), 4, 2)
    return TraceTurns(turns)


def names(requests):
    return [f"{request.session_id}{request.turn_index}" for request in requests]


# ------------------------------------------------------------------ lists


def test_an_open_list_is_sorted_by_time_and_ties_keep_their_order():
    source = OpenList(table(4), [300.0, 100.0, 300.0, 100.0])
    assert source.next_ms() == 100.0
    assert [r.index for r in source.take_due(100.0, 99)] == [1, 3]
    assert source.take_due(299.0, 0) == []
    late = source.take_due(350.0, 0)
    assert [(r.index, r.arrival_ms) for r in late] == [(0, 300.0), (2, 300.0)]
    assert source.exhausted()
    assert source.next_ms() is None
    assert source.take_due(1e9, 0) == []


def test_rows_of_a_list_carry_no_session():
    request = OpenList(table(1), [0.0]).take_due(0.0, 0)[0]
    assert request.session_id is None
    assert request.turn_index is None


def test_nobody_needs_to_tell_an_open_list_about_endings():
    assert not OpenList(table(1), [0.0]).hears_endings
    assert CappedList(table(1), 1).hears_endings


def test_a_cap_on_requests_counts_those_in_the_system():
    source = CappedList(table(5), 3)
    assert source.next_ms() is None
    assert [r.index for r in source.take_due(0.0, 0)] == [0, 1, 2]
    assert source.take_due(1.0, 3) == []
    assert source.take_due(1.0, 4) == []
    more = source.take_due(7.5, 1)
    assert [(r.index, r.arrival_ms) for r in more] == [(3, 7.5), (4, 7.5)]
    assert source.exhausted()


# ------------------------------------------------------------------ sessions


def test_a_turn_follows_the_end_of_the_one_before():
    content = sessions(row(session_id="a", timestamp=0), row(session_id="a", delay=3))
    source = SessionDriver(content, [0.0])
    (first,) = source.take_due(0.0, 0)
    assert source.next_ms() is None
    assert not source.exhausted()
    source.ended(first, 20.5, False)
    assert source.next_ms() == 23.5
    (second,) = source.take_due(23.5, 0)
    assert (second.session_id, second.turn_index, second.index, second.arrival_ms) == ("a", 1, 1, 23.5)
    assert source.exhausted()


def test_a_rejected_turn_is_followed_like_a_completed_one():
    source = SessionDriver(sessions(row(session_id="a"), row(session_id="a")), [0.0])
    source.ended(source.take_due(0.0, 0)[0], 5.0, True)
    assert names(source.take_due(5.0, 0)) == ["a1"]


def test_turns_of_one_instant_come_in_the_order_of_their_sessions():
    content = sessions(
        row(session_id="b"),
        row(session_id="a"),
        row(session_id="a"),
        row(session_id="b"),
        row(session_id="c"),
    )
    source = SessionDriver(content, [0.0, 0.0, 10.0])
    b, a = source.take_due(0.0, 0)
    source.ended(a, 10.0, False)
    source.ended(b, 10.0, False)
    assert names(source.take_due(10.0, 0)) == ["b1", "a1", "c0"]


def test_single_turns_in_an_open_loop_depend_on_no_ending():
    assert not SessionDriver(sessions(row(), row()), [0.0, 0.0]).hears_endings
    assert SessionDriver(sessions(row(), row()), None, cap=1).hears_endings
    assert SessionDriver(sessions(row(session_id="a"), row(session_id="a")), [0.0]).hears_endings


THREE = (
    row(session_id="a"), row(session_id="b"), row(session_id="a", delay=50), row(session_id="b"),
    row(session_id="c"), row(session_id="a", delay=10),
)  # fmt: skip


def test_a_cap_on_sessions_counts_pauses_too():
    """`spec 08, 13`, E3."""
    source = SessionDriver(sessions(*THREE), None, cap=2)
    a0, b0 = source.take_due(0.0, 0)
    assert names([a0, b0]) == ["a0", "b0"]
    source.ended(b0, 28.0, False)
    (b1,) = source.take_due(28.0, 1)
    source.ended(a0, 29.0, False)
    assert source.next_ms() == 79.0
    source.ended(b1, 56.0, False)
    (c0,) = source.take_due(56.0, 0)
    assert names([b1, c0]) == ["b1", "c0"]
    assert c0.arrival_ms == 56.0


def test_a_cap_of_one_lets_a_conversation_run_to_its_end():
    source = SessionDriver(sessions(*THREE), None, cap=1)
    order, now = [], 0.0
    while not source.exhausted():
        now = source.next_ms()
        (request,) = source.take_due(now, 0)
        order += names([request])
        source.ended(request, now + 20.0, False)
    assert order == ["a0", "a1", "a2", "b0", "b1", "c0"]


def test_the_one_worker_runtime_stamps_and_limits_when_it_takes():
    """`spec 01, 13`; `spec 08, 13`, E4."""
    source = SessionDriver(sessions(row(), row(), row()), None, cap=2, stamp_at_take=True)
    assert len(source.take_due(4.0, 1)) == 1
    (late,) = source.take_due(9.0, 1)
    assert late.arrival_ms == 9.0


def test_file_times_are_ignored_in_a_closed_loop():
    source = SessionDriver(sessions(row(timestamp=900), row(timestamp=100)), None, cap=5)
    assert [r.arrival_ms for r in source.take_due(0.0, 0)] == [0.0, 0.0]


# ------------------------------------------------------------------ increments


def run_delta(content, reject=()):
    source = SessionDriver(sessions_of(content), schedule_open(content, 1.0))
    taken = []
    while not source.exhausted():
        for request in source.take_due(source.next_ms(), 0):
            taken.append(request)
            request.emitted_tokens = 0 if request.index in reject else request.output_tokens
            source.ended(request, request.arrival_ms + 1.0, request.index in reject)
    return taken


def test_increments_accumulate_with_the_answers():
    taken = run_delta(
        increments(
            row(1, 2, session_id="a", timestamp=0, input_length=7),
            row(2, session_id="a"),
            row(3, session_id="a", output_token_ids=[8, 8]),
            row(4, session_id="a"),
        )
    )
    first, second = MIN_UNIQUE_TOKEN, MIN_UNIQUE_TOKEN + 1
    assert [r.input_tokens for r in taken] == [7, 13, 19, 25]
    assert taken[0].planned_output == (first, first)
    assert taken[1].prompt == ((1, 4), (2, 3), (first, 2), (2, 4))
    assert taken[2].prompt == ((1, 4), (2, 3), (first, 2), (2, 4), (second, 2), (3, 4))
    assert taken[3].prompt == (*taken[2].prompt, (8, 2), (4, 4))
    assert taken[3].planned_output is None  # nothing follows that could spell it


def test_equal_neighbours_across_turns_are_one_run():
    taken = run_delta(
        increments(row(1, session_id="a", timestamp=0, output_token_ids=[5, 6]), row(6, session_id="a"))
    )
    assert taken[1].prompt == ((1, 4), (5, 1), (6, 5))


def test_a_rejected_turn_leaves_its_question_but_no_answer():
    taken = run_delta(increments(row(1, session_id="a", timestamp=0), row(2, session_id="a")), reject={0})
    assert taken[1].prompt == ((1, 4), (2, 4))


def test_answers_of_different_turns_and_sessions_differ():
    rows = [
        row(1, session_id=name) | ({"timestamp": 0} if turn == 0 else {})
        for turn in range(3)
        for name in "ab"
    ]
    taken = run_delta(increments(*rows))
    answers = [r.planned_output[0] for r in taken if r.planned_output]
    assert len(set(answers)) == len(answers) == 4


# ------------------------------------------------------------------ workflows


def workflow(*rows):
    records = [{"input_length": 8, "output_length": 1, "hash_ids": [1, 2], **fields} for fields in rows]
    return WorkflowDriver(read_trace(records, "agentic_mooncake", 4))


def test_a_request_waits_for_the_last_of_its_dependencies():
    source = workflow(
        {"request_id": "a", "timestamp": 100},
        {"request_id": "b", "timestamp": 140},
        {"request_id": "c", "wait_for": ["a", "b", "a"], "delay": 2.5, "timestamp": 120},
    )
    (a,) = source.take_due(source.next_ms(), 0)
    (b,) = source.take_due(source.next_ms(), 0)
    assert (a.arrival_ms, b.arrival_ms) == (0.0, 40.0)
    source.ended(b, 60.0, True)
    assert source.next_ms() is None
    source.ended(a, 90.0, False)
    assert source.next_ms() == 92.5
    (c,) = source.take_due(95.0, 0)
    assert c.arrival_ms == 92.5
    assert source.exhausted()


def test_workflow_ties_come_in_file_order_and_turns_are_counted():
    source = workflow(
        {"request_id": "c", "session_id": "s"}, {"request_id": "a"}, {"request_id": "b", "session_id": "s"}
    )
    taken = source.take_due(0.0, 0)
    assert [(r.index, r.session_id, r.turn_index) for r in taken] == [
        (0, "s", 0),
        (1, "request_2", 0),
        (2, "s", 1),
    ]
    assert source.ignores_cap
    assert not source.hears_endings


@pytest.mark.parametrize("count", [1, 7])
def test_sources_know_how_much_they_offer(count):
    assert OpenList(table(count), [0.0] * count).total == count
    assert CappedList(table(count), 2).total == count
    assert SessionDriver(sessions(*[row()] * count), None, cap=2).total == count


def test_a_pause_between_turns_that_never_ends_is_refused():
    driver = SessionDriver(sessions(row(session_id="a"), row(session_id="a", delay=1.7e308)), None, 1)
    request = driver.take_due(0.0, 0)[0]
    with pytest.raises(SimulationError, match="the pause after turn 0 of session 'a' would never end"):
        driver.ended(request, 1e308, False)


def test_a_pause_between_requests_that_never_ends_is_refused():
    driver = workflow({"request_id": "a"}, {"request_id": "b", "wait_for": ["a"], "delay": 1.7e308})
    request = driver.take_due(0.0, 0)[0]
    with pytest.raises(SimulationError, match="would never end"):
        driver.ended(request, 1e308, False)
