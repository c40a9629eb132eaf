"""Vectors of controllers and planners: facts, recorded answers, and worked timelines (`spec 10, 12`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dynamo_sim.autoscaling.policies.dynamo_planner import (
    DynamoPlanner,
    engine_capabilities,
    planner_is_installed,
)
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.simulation import PlannerBridge
from tests.parity.autoscaling_vectors import answer, expected, vector_files
from tests.parity.compare import differences

FILES = vector_files()

NEEDS_THE_PLANNER = {name for name, file in FILES.items() if file["kind"] == "planner_adapter"}


def _cases() -> list[Any]:
    params = []
    for name in sorted(FILES.keys() - NEEDS_THE_PLANNER):
        answers = answer(FILES[name])["cases"]
        for case, wanted, found in zip(FILES[name]["cases"], expected(FILES[name]), answers, strict=True):
            params.append(pytest.param(wanted, found, id=f"{name}/{case['name']}"))
    return params


@pytest.mark.parametrize(("wanted", "found"), _cases())
def test_a_vector_gets_its_answer(wanted: Any, found: Any) -> None:
    assert not differences({"report": wanted}, {"report": found})


@pytest.mark.parametrize("name", sorted(NEEDS_THE_PLANNER))
def test_planner_vectors_need_the_package(name: str) -> None:
    answers = answer(FILES[name])["cases"]
    assert len(answers) == len(FILES[name]["ticks"])
    if planner_is_installed():
        assert answers == expected(FILES[name])
    else:
        assert answers == [None] * len(answers)


@pytest.mark.skipif(not planner_is_installed(), reason="needs ai-dynamo 1.3.1 and its planner")
def test_the_real_planner_scales_our_fleet_as_it_scales_the_reference_s() -> None:
    from dynamo.mocker import MockEngineArgs, PlannerReplayBridge

    config = FILES["planner-agg-load"]["planner_config"]
    engine = {"num_gpu_blocks": 600, "block_size": 64, "max_num_batched_tokens": 8192, "startup_time": 7.0}
    load = {"input_tokens": 1000, "output_tokens": 200, "request_count": 400, "arrival_interval_ms": 90.0}
    known = {"decode": engine_capabilities(600, 64, 8192, 256)}

    ours = DynamoPlanner(config, known)
    scenario = Scenario.from_dict(
        {
            "name": "planner",
            "workload": {"kind": "synthetic", **load},
            "fleet": {"workers": 1, "engine": {**engine, "max_num_seqs": 256}},
        }
    )
    summary = PlannerBridge(scenario).run(ours).summary
    theirs = DynamoPlanner(config, known)
    reference = PlannerReplayBridge.from_synthetic(
        extra_engine_args=MockEngineArgs(**engine, max_num_seqs=256),
        num_workers=1,
        router_mode="round_robin",
        **load,
    ).run(theirs)
    events = theirs.finalize(reference).scaling_events
    assert len(events) >= 4
    assert ours.finalize(dict(summary)).scaling_events == events
    for name in ("duration_ms", "mean_ttft_ms", "completed_requests"):
        assert summary[name] == pytest.approx(reference[name], rel=1e-9)


def test_the_command_answers_a_vector_file_with_one_line(tmp_path: Path) -> None:
    path = tmp_path / "vectors.json"
    path.write_text(json.dumps(FILES["target-tracking"]), encoding="utf-8")
    script = Path(__file__).with_name("answer.py")
    done = subprocess.run(
        [sys.executable, str(script), str(path)], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0]) == answer(FILES["target-tracking"])
