"""Profiles that are damaged, or no profiles, end in one error that says what is wrong with which file."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamo_sim.cli import main
from dynamo_sim.timing.profile_source import load_profile
from tests.timing.test_profile import INSIDE
from tests.timing.test_profile_sources import DECODE, PREFILL, grid_npz, layers, pair, problem_of, write


def npz_with(path: Path, member: bytes) -> Path:
    """A grid whose first array is made of these bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("prefill_isl.npy", member)
        for name in list(INSIDE)[1:]:
            array = io.BytesIO()
            np.save(array, np.asarray(INSIDE[name], dtype=np.float64))
            archive.writestr(f"{name}.npy", array.getvalue())
    return path


def member(kind: str, shape: str = "(1,)") -> bytes:
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 8


@pytest.mark.parametrize(
    "damaged",
    [
        member("()"),
        member("'(1,,2)f4'"),
        member("'<f8, (2'"),
        member("(" * 5000),
        member("-" * 9000 + "1"),
        member("'<f8'", "(True,)"),
        member("'<f8'", "(10**18, 10**18)"),
        b"NOPE",
    ],
)
def test_an_array_with_a_damaged_header_is_one_error(tmp_path: Path, damaged: bytes) -> None:
    problem = problem_of(npz_with(tmp_path / "p.npz", damaged))
    assert problem.endswith("p.npz is no npz file of numbers, or is damaged")


def test_members_that_are_no_arrays_are_left_out(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("prefill_isl", b"hello")
    assert problem_of(tmp_path / "p.npz").endswith("no timing profile; it holds nothing")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"z_itl": np.zeros(4, "f8,f8")}, "z_itl.npy holds"),
        ({"z_itl": np.zeros(4, "M8[ns]")}, "z_itl holds datetime64[ns], not numbers"),
        ({"z_itl": np.zeros(4, complex)}, "z_itl holds complex128, not numbers"),
        ({"z_itl": np.zeros((1, 1, 4))}, "z_itl must have at most 2 dimensions, not 3"),
        ({"max_kv_tokens": [-5]}, "max_kv_tokens is -5; must be above 0"),
        ({"x_kv_usage": [10.0, 30.0, 20.0, 60.0]}, "from 0 to 1, but has the value 60"),
        ({"max_kv_tokens": [1e308], "x_kv_usage": [0.1, 2.0, 0.2, 2.0]}, "max_kv_tokens is 1e+308"),
    ],
)
def test_measurements_that_are_none_are_refused(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    folder = pair(tmp_path)
    write(folder / "h200_decode.npz", {**DECODE, **changes})
    assert problem in problem_of(folder)


def test_sizes_that_are_no_whole_numbers_are_refused(tmp_path: Path) -> None:
    folder = pair(tmp_path, tp=(1, 2))
    rows = {key: [values] * 2 for key, values in PREFILL.items()}
    write(folder / "h200_prefill.npz", {**rows, "tp": [np.inf, 1.0]})
    assert "tp must hold whole numbers, found [inf, 1.0]" in problem_of(folder, tp=1)


def test_an_empty_label_is_left_out(tmp_path: Path) -> None:
    folder = pair(tmp_path)
    write(folder / "h200_decode.npz", {**DECODE, "model": []})
    assert "model" not in load_profile(folder).labels


@pytest.mark.parametrize("wrong", [["10", "20", "40", "100"], [1, 2, True, 4], "10", {"a": 1}])
def test_texts_and_booleans_are_no_numbers_of_a_profile(wrong: Any) -> None:
    assert problem_of({**INSIDE, "prefill_isl": wrong}).endswith("prefill_isl must be a list of numbers")


def test_an_axis_of_tokens_begins_at_0_or_above() -> None:
    changed = {**INSIDE, "prefill_isl": [-10, 20, 40, 100]}
    assert problem_of(changed).endswith("prefill_isl counts tokens, but begins at -10")


@pytest.mark.parametrize("damage", [lambda packed: packed[:-12], lambda packed: packed[:20] + b"\xff" * 40])
def test_a_damaged_gzip_table_is_one_error(tmp_path: Path, damage: Any) -> None:
    file = layers(tmp_path) / "attention.csv.gz"
    file.write_bytes(damage(file.read_bytes()))
    assert "attention.csv.gz is damaged, or no gzip file" in problem_of(tmp_path)


def test_a_table_that_unpacks_to_very_much_is_refused(tmp_path: Path) -> None:
    (layers(tmp_path) / "attention.csv.gz").write_bytes(gzip.compress(b"\n" * (65 << 20), 1))
    assert "attention.csv.gz unpacks to more than 67,108,864 bytes" in problem_of(tmp_path)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("embedding,1,x\n", "dense.csv: row 1: time_us: found 'x'; must be a number from 0"),
        ("embedding,1,\n", "dense.csv: row 1: time_us: found an empty cell; must be a number from 0"),
        ("embedding,1,True\n", "found 'True'"),
        ("embedding,1,inf\n", "found 'inf'"),
        ("embedding,-1,5\n", "dense.csv: row 1: tokens: found '-1'"),
        ("embedding,1,5\n", "dense.csv has no measurements of final_layernorm, layernorm"),
        ("", "dense.csv has no measurements of embedding"),
        ('"embedding,1,1\n', "dense.csv is no table"),
    ],
)
def test_a_table_with_wrong_cells_names_the_row(tmp_path: Path, table: str, problem: str) -> None:
    (layers(tmp_path) / "dense.csv").write_text("layer,tokens,time_us\n" + table)
    assert problem in problem_of(tmp_path)


def test_a_first_line_without_end_is_no_table(tmp_path: Path) -> None:
    (layers(tmp_path) / "dense.csv").write_text("c," * 100_000)
    assert "its first line has more than 10,000 bytes" in problem_of(tmp_path)


def test_an_operator_that_was_not_measured_everywhere_is_interpolated(tmp_path: Path) -> None:
    whole = load_profile(layers(tmp_path / "whole")).grid
    (layers(tmp_path / "gap") / "dense.csv").write_text(
        (tmp_path / "whole" / "dense.csv").read_text().replace("qkv_proj,2,12\n", "")
    )
    assert load_profile(tmp_path / "gap").grid.decode_itl == pytest.approx(whole.decode_itl)


@pytest.mark.parametrize(
    ("meta", "problem"),
    [
        ("[1, 2]", "meta.yaml must be a section of keys like `model: ...`, found [1, 2]"),
        ("hello", "meta.yaml must be a section of keys"),
        ("a: " + "[" * 3000, "meta.yaml: nested too deeply"),
        ("layers: true", "meta.yaml does not say how many layers"),
        ("layers: " + "9" * 400, "meta.yaml does not say how many layers"),
        ("!!python/object/apply:os.system [ls]", "is not allowed"),
        ("layers: 2020-13-45", "meta.yaml does not say how many layers"),
    ],
)
def test_meta_that_is_no_meta_is_one_error(tmp_path: Path, meta: str, problem: str) -> None:
    assert problem in problem_of(layers(tmp_path, meta=meta))


def test_a_profile_that_cannot_be_used_names_the_line_of_the_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.npz").write_text("no profile")
    scenario = tmp_path / "x.yaml"
    scenario.write_text(
        "name: x\nworkload: {kind: synthetic, input_tokens: 8, output_tokens: 2, request_count: 1,"
        " arrival_interval_ms: 1}\nfleet:\n  engine:\n    planner_profile_data: p.npz\n"
    )
    for command in (["validate", str(scenario)], ["run", str(scenario), "--no-save"]):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert error.startswith(
            f'{scenario}:5:27: Failed to load planner_profile_data from "{tmp_path}/p.npz": '
        )


def test_a_profile_that_cannot_be_drawn_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = grid_npz(tmp_path / "p.npz", prefill_ttft_ms=[-1.7e308, 1.7e308, 1.7e308, 1.7e308])
    assert main(["timing", str(path), "--png", str(tmp_path / "p.png")]) == 2
    assert "--png: the profile has values above 1e+300" in capsys.readouterr().err


def test_a_profile_is_saved_to_npz_files_and_devices_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = grid_npz(tmp_path / "p.npz")
    (tmp_path / "x.yaml").write_text("name: x\n")
    assert main(["timing", str(path), "--save", str(tmp_path / "x.yaml")]) == 2
    assert "found the ending '.yaml'; must be .npz" in capsys.readouterr().err
    assert (tmp_path / "x.yaml").read_text() == "name: x\n"
    assert main(["timing", str(path), "--save", "/dev/null"]) == 0


def test_labels_cannot_move_the_cursor_of_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = pair(tmp_path)
    write(folder / "h200_decode.npz", {**DECODE, "model": ["\x1b[2Jbad\n"]})
    assert main(["timing", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\\x1b[2Jbad\\n" in out
