"""Odd files, folders and policies: one line, or the answer that was meant."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dynamo_sim import cli
from tests.helpers import DEMO


@pytest.fixture(autouse=True)
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo.yaml").write_text(DEMO, encoding="utf-8")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize(("option", "place"), [("--out", "/proc/x"), ("--html", "/proc/x.html")])
def test_a_place_that_takes_no_files_is_refused_before_the_run(
    option: str, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dynamo_sim.simulation.run", lambda *_: pytest.fail("it ran"))
    assert cli.main(["run", "demo.yaml", option, place]) == 2
    assert capsys.readouterr().err.startswith(f"{option} {place}: cannot be written: ")


def test_a_folder_may_have_a_name_that_is_no_text() -> None:
    folder = os.fsdecode(b"n\xff")
    change = ["--set", "report.requests_format=parquet"]
    assert (
        cli.main(["run", "demo.yaml", "--quiet", "--out", folder, "--html", folder + ".html", *change]) == 0
    )
    assert Path(folder, "requests.parquet").exists() and Path(folder + ".html").exists()


def test_the_home_of_nobody_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "demo.yaml", "--set", 'fleet.engine.planner_profile_data="~nosuchuser/x"']) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_of_thousands_of_problems_the_first_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("demo.yaml").write_text(DEMO + "".join(f"k{number}: 1\n" for number in range(5_000)))
    assert cli.main(["validate", "demo.yaml"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 101 and lines[-1] == "demo.yaml: 4,900 more problems; is this a scenario?"


LOUD = """
import os
class Loud:
    def __init__(self):
        print("made")
    def decide(self, now_s, view, fleet):
        print("asked")
        os.chdir("/")
"""


def test_what_a_policy_prints_and_where_it_goes_does_not_touch_the_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("loud.py").write_text(LOUD)
    Path("demo.yaml").write_text(
        DEMO + "autoscaler: {period_s: 0.01, max_workers: 2, policy: {kind: custom, class: 'loud:Loud'}}\n"
    )
    assert cli.main(["run", "demo.yaml", "--json", "--out", "here"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["num_requests"] == 5
    assert "made\n" in err and "asked\n" in err
    assert Path.cwd() == tmp_path and Path("here/summary.json").exists()
    assert cli.main(["validate", "demo.yaml"]) == 0
    assert "made" not in capsys.readouterr().out


def test_warnings_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"timestamp": 0, "input_length": 4, "output_length": 1, "hash_ids": [1]}, {"\x1b[2J": 1}]
    Path("t.jsonl").write_text("\n".join(map(json.dumps, rows)) + '\n{"session_id": "\x1b[2J"}\n')
    Path("demo.yaml").write_text(
        "name: demo\nworkload: {kind: trace, path: t.jsonl, skip_bad_lines: true}\nreport: {plots: false}\n"
    )
    assert cli.main(["run", "demo.yaml", "--no-save", "--json"]) == 0
    assert "\x1b" not in capsys.readouterr().err
