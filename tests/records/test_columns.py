"""Requests, passes, levels and lives of workers as columns (`spec 09, 1, 3 and 10`)."""

from __future__ import annotations

import numpy as np
import pytest

from dynamo_sim.engine.gaps import GapLog, merged_gaps
from dynamo_sim.engine.pass_columns import pass_columns
from dynamo_sim.engine.pass_log import PassLog
from dynamo_sim.records.columns import RequestColumns
from dynamo_sim.records.fleet_changes import FleetCause, FleetChange
from dynamo_sim.records.levels import Level
from dynamo_sim.records.lifespans import lifespans
from tests.helpers import note_passes
from tests.report.run_records import rejected, served


def test_what_was_not_observed_is_nan() -> None:
    columns = RequestColumns.of([served(0, 1.0, [5.0]), rejected(1, 2.0)])
    assert columns.ttft_ms[0] == 4.0
    assert np.isnan(columns.ttft_ms[1]) and np.isnan(columns.first_admit_ms[1])
    assert np.isnan(columns.tpot_ms).all() and np.isnan(columns.ttst_ms).all()
    assert columns.counting.tolist() == [True, False]


def test_columns_of_no_request_are_empty() -> None:
    columns = RequestColumns.of([])
    assert len(columns) == 0 and columns.tpot_ms.tolist() == []


def test_latencies_are_never_negative() -> None:
    columns = RequestColumns.of([served(0, 9.0, [5.0, 6.0])])
    assert columns.ttft_ms[0] == 0.0 and columns.e2e_ms[0] == 0.0 and columns.tpot_ms[0] == 1.0


def test_gaps_do_not_depend_on_how_they_were_grouped() -> None:
    single, bulk = GapLog(), GapLog()
    ends = [1.5, 2.75, 4.0]
    for before, after in zip([0.5, *ends], ends, strict=False):
        for _ in range(3):
            single.add(before, after, 1)
    bulk.add_stretch(0.5, ends, 3)
    for one, other in zip(merged_gaps([single]), merged_gaps([bulk]), strict=True):
        assert one.tolist() == other.tolist()
    assert merged_gaps([bulk])[1].tolist() == [3, 6]


@pytest.mark.parametrize("merge_at", [0, 1, 5, 1 << 20])
def test_gaps_are_the_same_however_many_are_merged_at_once(
    merge_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynamo_sim.engine.gaps.MERGE_GAPS", merge_at)
    logs = []
    for worker in range(7):
        log = GapLog()
        log.add_stretch(0.0, [1.0, 1.5, 3.5 + worker], 2)
        log.add(4.0, 4.5, worker)
        logs.append(log)
    gaps, counts = merged_gaps(logs)
    assert gaps.tolist() == [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert counts.tolist() == [14 + 21, 14, *[2] * 7]


def test_no_gaps_are_two_empty_arrays() -> None:
    for logs in ([], [GapLog()]):
        gaps, counts = merged_gaps(logs)
        assert gaps.tolist() == [] and counts.tolist() == []


def test_a_stretch_becomes_one_row_a_pass() -> None:
    log = PassLog(7, block_tokens=16)
    note_passes(log, 0.0, [2.0], output_tokens=4, prefill_requests=4, prefill_tokens=40, used_blocks=3)
    stretch = {"decode_requests": 4, "decode_kv_tokens": 44, "queued_requests": 3, "used_blocks": 3}
    note_passes(log, 2.0, [3.0, 4.5], opened=[1, 0], output_tokens=4, **stretch)
    columns = pass_columns([log])
    assert columns["worker_id"].tolist() == [7, 7, 7]
    assert columns["start_ms"].tolist() == [0.0, 2.0, 3.0]
    assert columns["end_ms"].tolist() == [2.0, 3.0, 4.5]
    assert columns["prefill_tokens"].tolist() == [40, 0, 0]
    assert columns["decode_kv_tokens"].tolist() == [0, 44, 48]
    assert columns["used_kv_tokens"].tolist() == [48, 48, 64]
    assert columns["queued_requests"].tolist() == [0, 3, 3]


def test_no_pass_has_the_same_columns() -> None:
    log = PassLog(0, block_tokens=16)
    note_passes(log, 0.0, [1.0])
    some, none = pass_columns([log]), pass_columns([])
    assert list(some) == list(none)
    assert {name: column.dtype for name, column in some.items()} == {n: c.dtype for n, c in none.items()}
    assert all(len(column) == 0 for column in none.values())


def test_a_level_holds_until_it_changes() -> None:
    level = Level.of_changes([5.0, 1.0, 1.0], [-2.0, 1.0, 1.0])
    assert level.at_ms.tolist() == [1.0, 5.0]
    assert level.at(np.array([0.0, 1.0, 4.9, 5.0])).tolist() == [0.0, 2.0, 2.0, 0.0]


def test_means_of_a_level_are_over_time() -> None:
    level = Level.of_changes([1.0, 3.0], [2.0, -1.0])
    edges = np.array([0.0, 2.0, 4.0, 10.0])
    assert level.means(edges).tolist() == [1.0, 1.5, 1.0]
    assert level.peaks(edges).tolist() == [2.0, 2.0, 1.0]


def test_an_empty_level_is_zero() -> None:
    level = Level.of_changes([], [])
    assert level.means(np.array([0.0, 1.0])).tolist() == [0.0]
    assert level.peaks(np.array([0.0, 1.0])).tolist() == [0.0]


def test_spans_add_up_where_they_overlap() -> None:
    level = Level.of_spans(np.array([0.0, 1.0]), np.array([2.0, 3.0]), 1.0)
    assert level.at(np.array([0.5, 1.5, 2.5, 3.0])).tolist() == [1.0, 2.0, 1.0, 0.0]


def test_lives_of_workers_follow_the_changes_of_the_fleet() -> None:
    changes = [
        FleetChange(0.0, 1, 0, 0, FleetCause.START, (0,)),
        FleetChange(10.0, 1, 2, 0, FleetCause.ADDED, (1, 2)),
        FleetChange(15.0, 1, 1, 0, FleetCause.CANCELLED, (2,)),
        FleetChange(20.0, 2, 0, 0, FleetCause.READY, (1,)),
        FleetChange(30.0, 1, 0, 1, FleetCause.MARKED, (0,)),
        FleetChange(40.0, 1, 0, 0, FleetCause.REMOVED, (0,)),
    ]
    first, second, third = lifespans(changes, 100.0)
    assert (first.since_ms, first.active_ms, first.draining_ms, first.until_ms) == (0.0, 0.0, 30.0, 40.0)
    assert (second.since_ms, second.active_ms, second.draining_ms, second.until_ms) == (
        10.0,
        20.0,
        None,
        100.0,
    )
    assert (third.since_ms, third.active_ms, third.until_ms) == (10.0, None, 15.0)


def test_workers_without_startup_are_active_when_added() -> None:
    changes = [
        FleetChange(0.0, 1, 0, 0, FleetCause.START, (0,)),
        FleetChange(5.0, 2, 0, 0, FleetCause.ADDED, (1,)),
    ]
    assert lifespans(changes, 9.0)[1].active_ms == 5.0
