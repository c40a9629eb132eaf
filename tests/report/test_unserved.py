"""Requests that were not served are pointed out (`spec 02, 12; 09, 6`)."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim import run
from dynamo_sim.scenario import Scenario

ROWS = [
    {"timestamp": at_ms, "input_length": length, "output_length": 20, "hash_ids": [at_ms]}
    for at_ms, length in ((0, 30), (10, 100), (20, 200))
]


def warnings_of(rows: list[dict[str, Any]], workers: int = 1, **more: Any) -> list[str]:
    engine = {"num_gpu_blocks": 8, "block_size": 16, "enable_prefix_caching": False}
    scenario = {
        "name": "unserved",
        "workload": {"kind": "trace", "records": rows, "trace_block_size": 512},
        "fleet": {"workers": workers, "engine": engine},
        **more,
    }
    return run(Scenario.from_dict(scenario)).warnings


@pytest.mark.parametrize("workers", [1, 2])
def test_a_rejected_request_is_counted_with_the_reason(workers: int) -> None:
    assert warnings_of(ROWS, workers) == [
        "1 of 3 requests was rejected: a prompt of 200 tokens is too long for the KV pool of 128 tokens "
        "(num_gpu_blocks 8 x block_size 16)"
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_requests_cut_by_the_time_cap_are_counted(workers: int) -> None:
    assert warnings_of(ROWS[:2], workers, limits={"max_sim_time_ms": 15.0}) == [
        "2 of 2 requests were still unfinished at the cap (limits.max_sim_time_ms 15)"
    ]


def test_a_run_that_served_everybody_has_no_warning() -> None:
    assert warnings_of(ROWS[:2]) == []
