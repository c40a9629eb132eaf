"""The scenario of a result can be read, and run again where its tree has been moved."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dynamo_sim.report.scenario_text import scenario_yaml
from dynamo_sim.scenario import Scenario, load_scenario
from dynamo_sim.scenario.yaml_source import read_yaml
from dynamo_sim.simulation import run

TREE = Path(__file__).parents[2] / "scenarios"
WORKLOAD = {
    "kind": "synthetic",
    "input_tokens": 8,
    "output_tokens": 2,
    "request_count": 2,
    "arrival_interval_ms": 1.0,
}
SHIPPED = sorted(file.relative_to(TREE) for file in TREE.rglob("*.yaml") if file.parent.name != "data")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A trace, a profile, and a scenario that names them."""
    shutil.copytree(TREE / "data", tmp_path / "here" / "data")
    (tmp_path / "here" / "my.yaml").write_text(
        "name: my\nworkload: {kind: trace, format: mooncake, path: data/chat_trace.jsonl}\n"
        "fleet: {engine: {planner_profile_data: data/example_profile.npz}}\n"
        "report: {plots: false, passes: false}\n"
    )
    return tmp_path / "here"


@pytest.mark.parametrize("file", SHIPPED, ids=str)
def test_what_is_written_is_read_as_the_same_scenario(file: Path, tmp_path: Path) -> None:
    scenario = load_scenario(TREE / file)
    text = scenario_yaml(scenario)
    (tmp_path / "again.yaml").write_text(text, encoding="utf-8")
    assert load_scenario(tmp_path / "again.yaml").to_dict() == scenario.to_dict()
    assert ": null" not in text and "\\n\\" not in text


def test_a_manifest_is_written_as_a_block() -> None:
    text = scenario_yaml(load_scenario(TREE / "hpa_flash_crowd.yaml"))
    assert "\n    manifest: |\n      apiVersion: autoscaling/v2\n" in text


def test_a_null_that_is_no_default_stays() -> None:
    data = {
        "name": "demo",
        "workload": {"kind": "synthetic", "input_tokens": 1, "output_tokens": 1, "request_count": 1},
    }
    scenario = Scenario.from_dict(data)
    odd = scenario.to_dict()
    odd["fleet"]["engine"]["planner_profile_data"] = None

    class Odd:
        """A scenario that another program reads: nulls mean something there."""

        def to_dict(self) -> dict[str, object]:
            return odd

    assert "planner_profile_data: null" in scenario_yaml(Odd())


def test_results_can_be_run_again_after_their_tree_was_moved(tree: Path, tmp_path: Path) -> None:
    result = run(load_scenario(tree / "my.yaml"))
    result.save(tree / "results" / "my")
    assert "path: ../../data/chat_trace.jsonl" in (tree / "results/my/scenario.yaml").read_text()
    tree.rename(tmp_path / "there")
    again = run(load_scenario(tmp_path / "there/results/my/scenario.yaml"))
    assert again.summary.without_wall_time() == result.summary.without_wall_time()


def test_paths_of_another_tree_are_absolute(tree: Path) -> None:
    scenario = load_scenario(tree / "my.yaml")
    absolute = f"path: {tree}/data/chat_trace.jsonl"
    assert absolute in scenario_yaml(scenario, Path("/elsewhere/results")) and absolute in scenario_yaml(
        scenario
    )


def test_paths_that_started_from_the_current_folder_can_be_found_from_the_results(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    workload = {"kind": "trace", "format": "mooncake", "path": "data/chat_trace.jsonl"}
    text = scenario_yaml(Scenario.from_dict({"name": "my", "workload": workload}), tree / "results")
    assert "path: ../data/chat_trace.jsonl" in text


def test_paths_inside_a_manifest_are_not_ours() -> None:
    class WithManifest:
        def to_dict(self) -> dict[str, object]:
            probe = {"path": "healthz", "port": None}
            return {"name": "my", "autoscaler": {"policy": {"manifest": [{"probe": probe}]}}}

    assert "path: healthz" in scenario_yaml(WithManifest(), Path("/x"))


@pytest.mark.parametrize(
    "name", ["1e3", "089", "1E5", "12e03", "0x10", "1_000", "yes", "null", "true", "1.0", "2024-01-01"]
)
def test_a_name_that_looks_like_a_number_is_read_back_as_a_name(name: str, tmp_path: Path) -> None:
    scenario = Scenario.from_dict({"name": name, "workload": WORKLOAD})
    (tmp_path / "x.yaml").write_text(scenario_yaml(scenario), encoding="utf-8")
    assert load_scenario(tmp_path / "x.yaml") == scenario


@pytest.mark.parametrize(
    "text", ["a\x85b", "a\u2028b", "a\rb", "a\r\nb", "a\nb\x85", " a", "a\n", "#a", "a: b", "a\tb\n c"]
)
def test_every_text_of_a_manifest_is_read_back_as_it_was(text: str) -> None:
    class Odd:
        def to_dict(self) -> dict[str, str]:
            return {"text": text}

    assert read_yaml(scenario_yaml(Odd()), "x").data == {"text": text}
