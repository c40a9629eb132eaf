"""`dynamo-sim timing`: what a person is shown of a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynamo_sim.cli import build_parser
from dynamo_sim.cli.timing import describe
from dynamo_sim.errors import ScenarioError
from dynamo_sim.timing.profile_source import load_profile
from tests.timing.test_profile import INSIDE
from tests.timing.test_profile_sources import grid_npz, layers, pair


def run(*words: str | Path) -> int:
    arguments = build_parser().parse_args(["timing", *map(str, words)])
    code: int = arguments.handler(arguments)
    return code


def test_axes_ranges_and_values_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(grid_npz(tmp_path / "p.npz")) == 0
    printed = capsys.readouterr().out
    assert "4 points, 10 to 100 prompt tokens" in printed
    assert "4 x 3 grid, 0 to 64 KV tokens in use" in printed
    assert "2.000 to 20.000 ms measured\n" in printed
    assert "             32     4.00     9.00    20.00\n" in printed
    assert "filled in" not in printed


def test_values_that_were_not_measured_are_marked(tmp_path: Path) -> None:
    lines = list(describe(load_profile(pair(tmp_path))))
    assert any("measured at 4 points; the other 4 cells are filled in" in line for line in lines)
    assert lines[-4:] == [
        "            100     5.00     4.00*",
        "            200     7.00*    6.00",
        "            300     9.00     8.00*",
        "            600    15.00*   14.00",
    ]


def test_times_that_fall_with_the_load_are_pointed_out() -> None:
    lines = list(describe(load_profile({**INSIDE, "prefill_ttft_ms": [5, 9, 30, 29.9]})))
    notes = [line.split(maxsplit=1)[1] for line in lines if line.startswith("note")]
    assert notes == [
        "decode at context 16 takes less with 64 tokens in use (6.00 ms) than with 32 (9.00 ms)",
        "decode at context 64 takes less with 64 tokens in use (7.00 ms) than with 32 (20.00 ms)",
    ]


def test_a_huge_value_is_not_hundreds_of_digits() -> None:
    lines = list(describe(load_profile({**INSIDE, "prefill_ttft_ms": [5, 9, 1e300, 1e308]})))
    assert max(map(len, lines)) < 120 and any(line.endswith(" 1.000e+308") for line in lines)


def test_a_wide_grid_is_printed_in_several_tables() -> None:
    context = list(range(8, 408, 20))
    itl = [[float(c) for c in context]] * 2
    wide = {**INSIDE, "decode_active_kv_tokens": [0, 64], "decode_context_length": context, "decode_itl": itl}
    lines = list(describe(load_profile(wide)))
    assert max(len(line) for line in lines) <= 110
    assert sum(line.startswith("             64 ") for line in lines) == 2


@pytest.mark.parametrize("kind", ["grid", "pair", "layers"])
def test_a_picture_and_a_profile_are_written(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = {
        "grid": grid_npz(tmp_path / "p.npz"),
        "pair": pair(tmp_path / "pair"),
        "layers": layers(tmp_path / "gpu"),
    }
    picture, profile = tmp_path / "out.png", tmp_path / "out.npz"
    assert run(source[kind], "--png", picture, "--save", profile) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    before, after = load_profile(source[kind]).grid, load_profile(profile).grid
    assert before.decode_itl.tolist() == after.decode_itl.tolist()
    assert f"Picture: {picture}\nProfile: {profile}\n" in capsys.readouterr().out


def test_one_tensor_parallel_size_of_several_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = pair(tmp_path, tp=(1, 2))
    assert run(folder, "--tp", "2") == 0
    assert "2,000       35.000" in capsys.readouterr().out
    with pytest.raises(ScenarioError, match="take one of them out"):
        run(folder)
