"""Keys that are accepted and change nothing are known, and named (spec 08, 11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from dynamo_sim.scenario import EngineArgs, GeneratedWorkload, Scenario, SyntheticWorkload, TraceWorkload
from dynamo_sim.scenario.effects import EFFECTS, effective, notes, without_effect
from dynamo_sim.scenario.sections import Fleet, Limits, Transfer

LOAD = {"kind": "synthetic", "input_tokens": 10, "output_tokens": 2, "request_count": 3}


def scenario(engine: dict[str, Any] | None = None, **more: Any) -> Scenario:
    fleet = {"engine": engine or {}, **more.pop("fleet", {})}
    return Scenario.from_dict({"name": "x", "workload": LOAD, "fleet": fleet, **more})


def test_every_key_has_an_entry() -> None:
    sections: list[tuple[str, type[BaseModel]]] = [
        ("", Scenario),
        ("workload.", SyntheticWorkload),
        ("workload.", TraceWorkload),
        ("workload.", GeneratedWorkload),
        ("fleet.", Fleet),
        ("fleet.engine.", EngineArgs),
        ("fleet.engine.sglang.", type(EngineArgs().sglang)),
        ("fleet.engine.trtllm.", type(EngineArgs().trtllm)),
        ("transfer.", Transfer),
        ("limits.", Limits),
    ]
    keys = {start + key for start, model in sections for key in model.model_fields}
    parents = {start.rstrip(".") for start, _ in sections}
    assert keys - parents == set(EFFECTS) - {"workload.arrivals.profile"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("aic_system", "h200"),
        ("aic_model_path", "meta-llama/Llama-3.1-70B"),
        ("kv_transfer_bandwidth", 10),
        ("num_g2_blocks", 4),
        ("aic_mtp_seed", 7),
        ("bootstrap_port", 80),
        ("router_queue_policy", "wspt"),
    ],
)
def test_engine_keys_that_no_simulation_uses_are_named(key: str, value: Any) -> None:
    assert [name for name, _ in without_effect(scenario({key: value}))] == [f"fleet.engine.{key}"]


def test_keys_of_another_engine_are_named() -> None:
    assert [key for key, _ in without_effect(scenario({"sglang": {"schedule_policy": "lpm"}}))] == [
        "fleet.engine.sglang.schedule_policy"
    ]
    sglang = {"engine_type": "sglang", "preemption_mode": "fifo", "sglang": {"schedule_policy": "lpm"}}
    assert [key for key, _ in without_effect(scenario(sglang))] == ["fleet.engine.preemption_mode"]


def test_grace_for_workers_that_nobody_takes_away_is_named() -> None:
    (note,) = notes(scenario(fleet={"drain_grace_s": 3}))
    assert note.startswith("fleet.drain_grace_s: no worker is taken away")
    assert notes(scenario(fleet={"drain_grace_s": 3}, scaling=[{"at_ms": 5, "workers": 2}])) == []


def test_tensor_parallelism_is_said_to_change_no_duration() -> None:
    (note,) = notes(scenario({"aic_tp_size": 4}))
    assert (
        note
        == "fleet.engine.aic_tp_size: counts in the GPUs of a worker only; pass durations do not depend on it"
    )
    assert effective(scenario({"aic_tp_size": 4})) != effective(scenario())


def test_custom_code_is_named() -> None:
    policy = {"kind": "custom", "class": "mine:Policy"}
    assert notes(scenario(autoscaler={"policy": policy})) == [
        "autoscaler.policy.class: runs code that is not part of this tool: mine:Policy"
    ]


def test_a_scenario_with_everything_filled_in_has_no_key_without_effect() -> None:
    for engine in ({}, {"engine_type": "sglang"}, {"engine_type": "trtllm"}):
        assert without_effect(Scenario.from_dict(scenario(engine).to_dict())) == []


def test_scenarios_that_differ_without_effect_are_effectively_equal() -> None:
    assert effective(scenario({"aic_system": "h100"})) == effective(scenario({"aic_system": "h200"}))
    assert effective(scenario({"num_gpu_blocks": 5})) != effective(scenario())


def test_a_seed_is_named_where_nothing_is_random() -> None:
    assert without_effect(scenario(seed=3)) == [("seed", "nothing in this scenario is random")]
    assert without_effect(scenario(seed=3, routing={"mode": "kv_router"})) == []


def test_all_who_draw_are_known_to_the_rule_of_the_seed() -> None:
    package = Path(__file__).parents[2] / "dynamo_sim"
    draws = {
        file.relative_to(package).parts[0]
        for file in package.rglob("*.py")
        if "random_streams import stream" in file.read_text(encoding="utf-8")
    }
    assert draws == {"workload", "fleet", "routing", "autoscaling"}
