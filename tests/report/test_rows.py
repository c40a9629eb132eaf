"""Request rows in the reference's form (spec 09, 7)."""

from __future__ import annotations

import json

from dynamo_sim.records.records import RunRecords
from dynamo_sim.report.rows import HANDOFF_FIELDS, iter_json_lines, request_rows
from tests.report.run_records import rejected, served

KEYS = [
    "session_id",
    "turn_index",
    "uuid",
    "arrival_time_ms",
    "first_admit_ms",
    "first_token_ms",
    "last_token_ms",
    "ttft_ms",
    "ttst_ms",
    "e2e_latency_ms",
    "itl_ms",
    "input_length",
    "output_length",
    "reused_input_tokens",
    "prefill_worker_idx",
    "decode_worker_idx",
    "prefill_admit_ms",
    "source_held_ms",
    "destination_reserved_ms",
    "destination_activated_ms",
    "decode_admit_ms",
    "source_released_ms",
    "decode_reused_input_tokens",
    "prefill_route_overlap_tokens",
    "decode_route_overlap_tokens",
    "terminal_status",
]


def records() -> RunRecords:
    turn = served(0, 5.0, [20.0, 22.0, 28.0], input_tokens=8)
    turn.session_id, turn.turn_index, turn.worker_id = "chat", 1, 3
    cut = served(1, 1.0, [9.0], output_tokens=4)
    return RunRecords(requests=[turn, cut, served(2, 0.0, [7.0]), rejected(3, 5.0)])


def test_only_requests_that_ended_have_a_row_sorted_by_arrival() -> None:
    rows = request_rows(records())
    assert [row["arrival_time_ms"] for row in rows] == [0.0, 5.0, 5.0]
    assert [row["terminal_status"] for row in rows] == ["completed", "completed", "rejected"]


def test_rows_have_the_keys_of_the_reference_in_its_order() -> None:
    assert all(list(row) == KEYS for row in request_rows(records()))


def test_latencies_of_a_row() -> None:
    row = request_rows(records())[1]
    assert (row["ttft_ms"], row["ttst_ms"], row["itl_ms"], row["e2e_latency_ms"]) == (15.0, 2.0, 4.0, 23.0)
    assert (row["session_id"], row["turn_index"], row["decode_worker_idx"]) == ("chat", 1, 3)


def test_one_token_has_no_gap() -> None:
    row = request_rows(records())[0]
    assert (row["ttst_ms"], row["itl_ms"], row["e2e_latency_ms"]) == (None, None, 7.0)


def test_a_rejected_request_has_its_requested_length_and_no_times() -> None:
    row = request_rows(records())[2]
    assert row["output_length"] == 10 and row["reused_input_tokens"] == 0
    assert {row[name] for name in ("first_admit_ms", "first_token_ms", "ttft_ms", "itl_ms")} == {None}


def test_the_one_worker_runtime_names_no_session_and_no_worker() -> None:
    single = records()
    single.single_worker = True
    row = request_rows(single)[1]
    assert {row[name] for name in ("session_id", "turn_index", "decode_worker_idx")} == {None}


def test_an_aggregated_fleet_has_no_handoff() -> None:
    row = request_rows(records())[1]
    assert {row[name] for name in (*HANDOFF_FIELDS, "prefill_worker_idx")} == {None}


def test_lines_are_json_and_the_same_every_time() -> None:
    lines = list(iter_json_lines(records()))
    assert [json.loads(line) for line in lines] == request_rows(records())
    assert len({row["uuid"] for row in request_rows(records())}) == 3
