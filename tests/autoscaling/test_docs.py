"""Every example of docs/autoscaling.md can be put into a scenario as it is, and there is one for each policy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dynamo_sim.autoscaling.build import BUILT_KINDS, build_autoscaler
from dynamo_sim.autoscaling.policies.dynamo_planner import planner_is_installed
from dynamo_sim.scenario import load_scenario
from dynamo_sim.simulation import run

DOCUMENT = (Path(__file__).parents[2] / "docs" / "autoscaling.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


LOAD = """\
name: example
workload: {kind: generated, arrivals: {shape: poisson, rate_rps: 4}, input_tokens: 99, output_tokens: 9, duration_s: 70}
fleet: {workers: 2}
"""


def scenario_with(section: str, folder: Path) -> Any:
    (folder / "my_policy.py").write_text(blocks("python")[0], encoding="utf-8")
    (folder / "x.yaml").write_text(LOAD + section, encoding="utf-8")
    return load_scenario(folder / "x.yaml")


@pytest.mark.parametrize("section", blocks("yaml"), ids=lambda text: " ".join(text.split())[12:50])
def test_an_example_of_the_document_runs_without_a_warning(section: str, tmp_path: Path) -> None:
    scenario = scenario_with(section, tmp_path)
    if scenario.autoscaler.kind == "dynamo_planner" and not planner_is_installed():
        pytest.skip("needs ai-dynamo 1.3.1 and its planner")
    assert build_autoscaler(scenario.autoscaler, scenario).warnings == []
    assert len(run(scenario).decisions) > 0


def test_every_policy_has_an_example(tmp_path: Path) -> None:
    kinds = {scenario_with(section, tmp_path).autoscaler.kind for section in blocks("yaml")}
    assert kinds == BUILT_KINDS
