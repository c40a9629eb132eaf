"""The scenarios that come with the package."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml

from dynamo_sim.scenario import load_scenario
from dynamo_sim.scenario.effects import notes
from dynamo_sim.scenario.schema import scenario_schema, scenario_schema_text
from dynamo_sim.timing.profile_grid import ARRAYS
from dynamo_sim.timing.profile_source import load_profile

FOLDER = Path(__file__).parents[2] / "scenarios"
FILES = sorted(FOLDER.glob("*.yaml"))


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 6


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_shipped_scenario_is_good_and_called_like_its_file(file: Path) -> None:
    scenario = load_scenario(file)
    assert scenario.name == file.stem
    assert notes(scenario) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_shipped_scenario_agrees_with_the_schema(file: Path) -> None:
    schema = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_shipped_scenario_has_editor_hint_and_question(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# yaml-language-server: $schema=schema.json"
    comment = [line for line in lines[1:5] if line.startswith("#")]
    assert 1 <= len(comment) <= 3 and "?" in " ".join(comment)


@pytest.mark.parametrize("trace", ["chat_trace", "chat_sessions"])
def test_a_shipped_trace_is_what_its_script_makes(trace: str) -> None:
    script = FOLDER / "data" / f"make_{trace}.py"
    made = subprocess.run([sys.executable, script], capture_output=True, check=True)
    assert made.stdout == (FOLDER / "data" / f"{trace}.jsonl").read_bytes()


def test_the_shipped_profile_is_what_its_script_makes(tmp_path: Path) -> None:
    made = tmp_path / "profile.npz"
    subprocess.run([sys.executable, FOLDER / "data" / "make_example_profile.py", made], check=True)
    ours, shipped = load_profile(made), load_profile(FOLDER / "data" / "example_profile.npz")
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(ours.grid, name), getattr(shipped.grid, name))


def test_commands_of_the_readme_name_files_that_are_there() -> None:
    root = FOLDER.parent
    blocks = re.findall(r"^```bash\n(.*?)^```", (root / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    named = re.findall(r"(?:scenarios|notebooks)/[\w./-]*", "\n".join(blocks))
    assert len(named) > 8
    assert [name for name in named if not (root / name).exists() and not name.endswith("/")] == []
    assert re.findall(r"(?<![\w/.])[\w-]+\.(?:jsonl|npz|png|html|json)\b", "\n".join(blocks)) == []


def test_schema_file_is_current() -> None:
    stored = (FOLDER / "schema.json").read_text(encoding="utf-8")
    assert json.loads(stored) == scenario_schema(), "run: dynamo-sim schema --out scenarios/schema.json"
    assert scenario_schema_text().endswith("}\n")


def test_schema_refuses_what_the_loader_refuses() -> None:
    schema = scenario_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    good = {
        "name": "demo",
        "workload": {"kind": "synthetic", "input_tokens": 8, "output_tokens": 2, "request_count": 3},
    }
    assert validator.is_valid(good)
    assert validator.is_valid({**good, "fleet": {"engine": {"num_gpu_blocks": None, "sglang": None}}})
    assert not validator.is_valid({**good, "fleet": {"engine": {"blok_size": 4}}})
    assert not validator.is_valid({**good, "fleet": {"workers": 0}})
    assert not validator.is_valid({"name": "demo"})


def test_schema_explains_every_field() -> None:
    for name, model in scenario_schema()["$defs"].items():
        for key, field in model["properties"].items():
            assert field.get("description") or "$ref" in field, f"{name}.{key}"


def test_schema_does_not_speak_of_the_specification() -> None:
    assert "(spec" not in scenario_schema_text()
