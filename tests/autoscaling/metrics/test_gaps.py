"""Gaps between tokens as a policy sees them."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.simulation import run


def decisions(engine_type: str, max_stretch_passes: int) -> list[dict[str, Any]]:
    """What an HPA on the 95th percentile of the gaps decides while requests decode for a long time."""
    scenario = Scenario.from_dict(
        {
            "name": "gaps",
            "workload": {
                "kind": "synthetic",
                "input_tokens": 300,
                "output_tokens": 1200,
                "request_count": 120,
                "arrival_interval_ms": 900,
            },
            "fleet": {
                "workers": 2,
                "engine": {
                    "engine_type": engine_type,
                    "block_size": 64,
                    "num_gpu_blocks": 2048,
                    "startup_time": 20,
                },
            },
            "autoscaler": {
                "policy": {
                    "kind": "hpa",
                    "min_replicas": 1,
                    "max_replicas": 8,
                    "metrics": [{"metric": "itl", "over": "p95", "target": 12}],
                }
            },
            "limits": {"max_stretch_passes": max_stretch_passes},
        }
    )
    return run(scenario).records.decisions


@pytest.mark.parametrize("engine_type", ["vllm", "sglang"])
def test_a_scrape_in_the_middle_of_a_stretch_sees_the_gaps_up_to_then(engine_type: str) -> None:
    assert decisions(engine_type, 1_000_000) == decisions(engine_type, 1)
