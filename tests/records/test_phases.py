"""The phases of a request follow one another and add up to its latency."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dynamo_sim.records.phases import kept_on_both_sides, request_phases
from dynamo_sim.workload.request import Request
from tests.report.run_records import handed_over, served

TOKENS = [145.0, 160.0, 175.0]


def durations(request: Request) -> dict[str, float]:
    return {phase: float(end[0] - start[0]) for phase, (start, end) in request_phases([request]).items()}


def test_with_one_fleet_a_request_queues_prefills_and_decodes() -> None:
    request = served(0, 100.0, TOKENS)
    request.first_admit_ms = 104.0
    assert durations(request) == {"queue": 4.0, "prefill": 41.0, "decode": 30.0}


@pytest.mark.parametrize("reserved_first", [False, True])
def test_with_two_fleets_waiting_for_room_is_apart_from_the_queue(reserved_first: bool) -> None:
    request = handed_over(0, 100.0, TOKENS, reserved_first=reserved_first)
    assert durations(request) == {
        "queue": 10.0,
        "prefill": 20.0,
        "wait for room": 5.0,
        "wait for link": 0.0,
        "transfer": 8.0,
        "wait for batch": 2.0,
        "decode": 30.0,
    }


@pytest.mark.parametrize("reserved_first", [False, True])
def test_phases_leave_no_gap_and_add_up_to_the_latency(reserved_first: bool) -> None:
    spans = request_phases([handed_over(0, 100.0, TOKENS, reserved_first=reserved_first)])
    ends = sorted((float(start[0]), float(end[0])) for start, end in spans.values())
    assert ends[0][0] == 100.0 and ends[-1][1] == TOKENS[-1]
    assert all(before[1] == after[0] for before, after in pairwise(ends))


def test_a_phase_that_was_not_reached_has_no_duration() -> None:
    request = handed_over(0, 100.0, TOKENS)
    assert request.handoff is not None
    request.handoff.destination_reserved_ms = request.handoff.transfer_started_ms = None
    found = durations(request)
    assert found["prefill"] == 20.0
    assert np.isnan(found["wait for room"]) and np.isnan(found["transfer"])


def test_the_prefill_worker_keeps_the_prompt_until_its_release() -> None:
    kept = kept_on_both_sides([handed_over(0, 100.0, TOKENS)])
    assert {name: float(end[0] - start[0]) for name, (start, end) in kept.items()} == {
        "held by the prefill worker": 14.5,
        "room kept by the decode worker": 9.0,
    }
    assert kept_on_both_sides([served(0, 0.0, TOKENS)]) == {}
