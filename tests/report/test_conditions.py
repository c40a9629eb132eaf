"""The conditions under which figures hold."""

from __future__ import annotations

from typing import Any

from dynamo_sim import Scenario
from dynamo_sim.report.conditions import condition_lines, conditions, unequal_pools_warning


def scenario(**engine: Any) -> Scenario:
    workload = {"kind": "synthetic", "input_tokens": 8, "output_tokens": 2, "request_count": 1}
    return Scenario.from_dict({"name": "x", "workload": workload, "fleet": {"engine": engine}})


def test_conditions_name_durations_pool_and_routing() -> None:
    lines = condition_lines(scenario(speedup_ratio=2.0))
    assert lines[0] == "Engine: vllm"
    assert "one unnamed GPU and model" in lines[1] and lines[1].endswith("speedup_ratio 2")
    assert lines[2] == "KV pool: 1,048,576 tokens a worker (16,384 blocks of 64)"
    assert lines[3] == "Routing: round_robin"


def test_a_result_without_a_scenario_has_no_conditions() -> None:
    assert conditions(None) == {}


def test_engine_types_with_unequal_pools_are_warned_about() -> None:
    text = unequal_pools_warning([scenario(engine_type="vllm"), scenario(engine_type="sglang")])
    assert text is not None and "vllm 1,048,576, sglang 16,384 tokens a worker" in text


def test_equal_pools_or_one_engine_type_need_no_warning() -> None:
    assert (
        unequal_pools_warning([scenario(block_size=16), scenario(engine_type="sglang", block_size=16)])
        is None
    )
    assert unequal_pools_warning([scenario(), scenario(num_gpu_blocks=99)]) is None
