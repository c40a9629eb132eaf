"""Fleets whose workers have lower cache tiers: nothing depends on how passes are grouped, and everything ends."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dynamo_sim.report.result import RunResult
from dynamo_sim.report.rows import request_rows
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.simulation import run

LINKS = ("g1_to_g2", "g2_to_g1", "g2_to_g3", "g3_to_g2", "g2_to_g4", "g4_to_g2")


def fleets(seed: int) -> dict[str, Any]:
    """Two or three workers, or a prefill and a decode fleet, with small pools and tiers."""
    draw = random.Random(seed)
    engine: dict[str, Any] = {
        "block_size": 4,
        "num_gpu_blocks": draw.choice([10, 16, 30]),
        "num_g2_blocks": draw.choice([4, 16, 60]),
        "num_g3_blocks": draw.choice([None, 8, 100]),
        "enable_g4_storage": draw.random() < 0.3,
        "offload_batch_size": draw.choice([1, 2, None]),
        "kv_bytes_per_token": 250_000,
        **{f"bandwidth_{link}_gbps": draw.choice([0.0, 0.05, 0.3, 1.0, 14.0]) for link in LINKS},
    }
    rows, at_ms = [], 0.0
    for _ in range(draw.randint(5, 30)):
        at_ms += draw.choice([0.0, 3.0, 40.0, 200.0])
        first = 10 * draw.randint(1, 4)
        blocks = list(range(first, first + draw.randint(1, 7)))
        length = 4 * len(blocks) - draw.choice([0, 0, 1, 3])
        rows.append(
            {
                "timestamp": at_ms,
                "input_length": length,
                "output_length": draw.randint(1, 12),
                "hash_ids": blocks,
            }
        )
    one = {"workers": draw.randint(2, 3), "offload": True, "engine": engine}
    sections: dict[str, Any] = {"fleet": one}
    if draw.random() < 0.4:
        engine["num_gpu_blocks"] = (
            40  # destinations can take what running requests need: with less there are dead ends
        )
        sections = {name: {**one, "workers": draw.randint(1, 2)} for name in ("prefill", "decode")}
    return {
        "name": "tiers",
        "workload": {"kind": "trace", "format": "mooncake", "trace_block_size": 4, "records": rows},
        "routing": {"mode": draw.choice(["round_robin", "kv_router"])},
        **sections,
    }


def answer(data: dict[str, Any], passes: int) -> RunResult:
    return run(Scenario.from_dict({**data, "limits": {"max_stretch_passes": passes}}))


@pytest.mark.parametrize("seed", range(60))
def test_stretches_change_no_answer(seed: int) -> None:
    data = fleets(seed)
    one_by_one, stretches = answer(data, 1), answer(data, 1_000_000)
    assert request_rows(stretches.records) == request_rows(one_by_one.records)
    assert stretches.summary == one_by_one.summary


@pytest.mark.parametrize("seed", range(20))
def test_every_request_ends_however_slow_the_tiers_are(seed: int) -> None:
    summary = answer(fleets(seed), 1_000_000).summary
    assert summary["completed_requests"] + summary["rejected_requests"] == summary["num_requests"]
