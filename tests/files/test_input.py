"""Inputs that never end, or claim more than there is, are one line; they are not read first."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.scenario import Scenario, load_scenario
from dynamo_sim.timing.profile_source import load_profile
from dynamo_sim.workload.csv_column import read_token_column
from tests.timing.test_profile_sources import grid_npz, layers

ROOT = Path(__file__).parents[2]

DEMO = """\
name: demo
workload: {kind: synthetic, input_tokens: 100, output_tokens: 4, request_count: 5, arrival_interval_ms: 10}
"""


def problem_of_scenario(file: Path | str) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file)
    return str(caught.value)


def problem_of_profile(file: Path | str, tp: int | None = None) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_profile(file, tp)
    return str(caught.value).removeprefix(f'Failed to load planner_profile_data from "{file}": ')


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo.npz"
    os.mkfifo(path)
    return path


# ---------------------------------------------------------------- scenarios


def test_a_device_is_no_scenario() -> None:
    assert problem_of_scenario("/dev/zero") == "/dev/zero: cannot be read: it is a device, not a file"


def test_a_pipe_that_nobody_writes_to_is_no_scenario(fifo: Path) -> None:
    assert problem_of_scenario(fifo) == f"{fifo}: cannot be read: it is a named pipe, not a file"


def test_a_scenario_may_come_through_a_pipe_of_the_shell() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dynamo_sim", "validate", "/dev/stdin"],
        input=DEMO.encode(),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, b"/dev/stdin: ok\n")


def test_a_scenario_of_many_megabytes_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    file.write_text(DEMO + "# " + "x" * (4 << 20))
    assert problem_of_scenario(file) == f"{file}: cannot be read: it has more than 4,194,304 bytes"


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        (
            ".".join("a" * 20_000) + "=3",
            ".a.a....: not a dotted key like fleet.workers",
        ),
        ("x" * 100_000 + "=3", ": unknown key"),
        ("fleet.workers=" + "x" * 100_000, ": fleet.workers: found 'xxx"),
        ("a\udcffb=3", ": 'a\\udcffb': not a dotted key"),
    ],
    ids=["many parts", "a long key", "a long value", "no text"],
)
def test_a_message_about_a_change_is_short(tmp_path: Path, override: str, problem: str) -> None:
    file = tmp_path / "demo.yaml"
    file.write_text(DEMO)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file, [override])
    assert problem in str(caught.value) and len(str(caught.value)) < 500


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    file = tmp_path / "demo.yaml"
    file.write_text(DEMO)
    changed = load_scenario(file).with_(**{"fleet.workers": np.int64(3), "sla.ttft_ms": np.float32(0.5)})
    assert (changed.fleet.workers, type(changed.fleet.workers), changed.sla.ttft_ms) == (3, int, 0.5)
    data = changed.to_dict()
    data["fleet"]["workers"] = np.arange(4)[3]
    assert Scenario.from_dict(data).fleet.workers == 3


def test_a_tag_that_says_number_makes_one(tmp_path: Path) -> None:
    file = tmp_path / "demo.yaml"
    file.write_text(DEMO)
    assert load_scenario(file, ["fleet.workers=!!int 3"]).fleet.workers == 3
    assert load_scenario(file, ["name=!!str 3"]).name == "3"


def test_a_scenario_equals_what_was_made_of_its_data(tmp_path: Path) -> None:
    file = tmp_path / "demo.yaml"
    file.write_text(DEMO)
    scenario = load_scenario(file)
    again = Scenario.from_dict(scenario.to_dict())
    assert again == scenario and hash(again) == hash(scenario)
    assert scenario.with_(seed=1) != scenario


# ---------------------------------------------------------------- profiles


def test_a_device_is_no_profile() -> None:
    assert problem_of_profile("/dev/zero") == "it is a device, not a file"


def test_a_pipe_is_no_profile(fifo: Path, tmp_path: Path) -> None:
    assert problem_of_profile(fifo) == "it is a named pipe, not a file"
    assert problem_of_profile(tmp_path) == "it is a named pipe, not a file"
    folder = layers(tmp_path / "layers")
    (folder / "dense.csv").unlink()
    os.mkfifo(folder / "dense.csv")
    assert problem_of_profile(folder) == "it is a named pipe, not a file"


def npz(file: Path, shape: tuple[int, ...], content: bytes) -> Path:
    header = io.BytesIO()
    described: dict[str, Any] = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, described)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("prefill_isl.npy", header.getvalue() + content)
    return file


def test_an_array_that_claims_more_than_it_has_is_refused(tmp_path: Path) -> None:
    file = npz(tmp_path / "p.npz", (99_999_999_999,), b"")
    assert problem_of_profile(file).startswith(
        "p.npz is damaged: prefill_isl.npy claims 799,999,999,992 bytes and has "
    )


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(tmp_path: Path) -> None:
    file = npz(tmp_path / "p.npz", (10_000_000,), bytes(80_000_000))
    assert "unpacks to 80,000,128 bytes; a profile has at most 67,108,864" in problem_of_profile(file)


def test_a_profile_without_sizes_offers_no_choice_of_one(tmp_path: Path) -> None:
    file = grid_npz(tmp_path / "p.npz")
    assert problem_of_profile(file, tp=2).startswith("found --tp 2, and this is a single profile")
    assert problem_of_profile(tmp_path, tp=0).startswith("found --tp 0, and this is a single profile")


# ---------------------------------------------------------------- CSV


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('tokens\n1\n"2\n3\n', ":4: not a CSV file: unexpected end of data"),
        ("tokens\n1\n2,3\n", ":3: found 2 values; the first line names 1 columns"),
    ],
)
def test_a_table_that_does_not_fit_its_head_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text)
    with pytest.raises(TraceError) as caught:
        read_token_column(file, "tokens")
    assert str(caught.value) == f"{file}{problem}"
    file.write_text("tokens\n1,\n2, \n")
    assert read_token_column(file, "tokens").tolist() == [1, 2]
