"""A router of the user on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = """\
name: mine
workload: {kind: synthetic, input_tokens: 64, output_tokens: 4, request_count: 4}
fleet: {workers: 3}
routing:
  mode: custom
  class: "my_cli_router:Talks"
report: {plots: false}
"""
ROUTER = """\
class Talks:
    def pick(self, request, workers, now_ms):
        print("I am asked")
        return workers[0].id


class Fails:
    def pick(self, request, workers, now_ms):
        return workers[0].speed
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.yaml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "my_cli_router.py").write_text(ROUTER, encoding="utf-8")
    return tmp_path


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "dynamo_sim", *arguments]
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(
        program, cwd=folder, env={"PYTHONPATH": str(root)}, capture_output=True, text=True, check=False
    )


def test_what_a_router_prints_is_not_in_the_json(folder: Path) -> None:
    done = command(folder, "run", "mine.yaml", "--no-save", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["completed_requests"] == 4
    assert done.stderr.startswith("I am asked\n")


def test_an_error_in_a_router_is_one_line(folder: Path) -> None:
    done = command(folder, "run", "mine.yaml", "--no-save", "--set", "routing.class=my_cli_router:Fails")
    assert done.returncode == 1 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.endswith("has no attribute 'speed' (my_cli_router.py, line 9)")


def test_validate_finds_a_class_that_is_not_there(folder: Path) -> None:
    (folder / "my_cli_router.py").write_text("", encoding="utf-8")
    done = command(folder, "validate", "mine.yaml")
    assert done.returncode == 2
    assert done.stderr == (
        "mine.yaml:6:10: router my_cli_router:Talks: the module my_cli_router has no 'Talks'\n"
    )
