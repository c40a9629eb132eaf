"""Where commands write, and what they print where letters are missing: checked before the work is done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynamo_sim import cli
from dynamo_sim.scenario import load_scenario
from dynamo_sim.simulation import run
from tests.helpers import DEMO

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "scenarios/data/chat_trace.jsonl"


@pytest.fixture(autouse=True)
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo.yaml").write_text(DEMO, encoding="utf-8")


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: value for name, value in os.environ.items() if name not in ("LANG", "LC_ALL", "LC_CTYPE")}
    return subprocess.run(
        [sys.executable, "-m", "dynamo_sim", *arguments],
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    "environment",
    [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "latin-1"}],
)
def test_the_table_is_printed_in_every_encoding(environment: dict[str, str]) -> None:
    done = process("run", "demo.yaml", "--no-save", **environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\n| Time to First Token (ms) " in done.stdout and b"+---" in done.stdout


def test_names_that_the_encoding_lacks_are_printed_with_escapes() -> None:
    Path("ünder.yaml").write_text(DEMO, encoding="utf-8")
    done = process("validate", "ünder.yaml", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (0, b"\\xfcnder.yaml: ok\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", ""),
        ("run", "demo.yaml", "--out", ""),
        ("run", "demo.yaml", "--html", ""),
        ("compare", ""),
        ("validate", ""),
        ("schema", "--out", ""),
        ("trace", ""),
        ("trace", str(TRACE), "--png", ""),
        ("timing", ""),
    ],
    ids=" ".join,
)
def test_an_empty_text_is_no_path(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and "found an empty text; must be a path" in err and err.count("\n") == 1


@pytest.mark.parametrize("path", ["x.txt", ".", "demo.yaml/x.png"])
def test_a_picture_that_cannot_be_is_refused_before_the_trace_is_read(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["trace", "no-such-trace.jsonl", "--png", path]) == 2
    assert cli.main(["timing", "no-such-profile.npz", "--png", path]) == 2
    assert capsys.readouterr().err.count(f"--png {path}: ") == 2


def test_a_folder_in_the_place_of_a_result_is_refused_before_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["run", "demo.yaml", "--quiet", "--out", "out"]) == 0
    Path("out/summary.json").unlink()
    Path("out/summary.json").mkdir()
    assert cli.main(["run", "demo.yaml", "--quiet", "--out", "out"]) == 2
    assert capsys.readouterr().err == "--out out: out/summary.json is a folder; choose another --out\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments", [("run", "demo.yaml", "--no-save", "--html"), ("schema", "--out")], ids=" ".join
)
def test_output_that_cannot_be_written_is_exit_code_1(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*arguments, "/dev/full"]) == 1
    assert (
        capsys.readouterr().err == f"{arguments[-1]} /dev/full: cannot be written: No space left on device\n"
    )


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
def test_a_pipe_can_be_written_by_its_name() -> None:
    done = process("schema", "--out", "/dev/stdout")
    assert (done.returncode, done.stderr) == (0, b"") and done.stdout.startswith(b"{")


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_the_picture_is_told_like_any_file_and_never_inside_json(
    json: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["trace", str(TRACE), "--png", "x.png", *json]) == 0
    out, err = capsys.readouterr()
    assert (err if json else out).endswith("Picture: x.png\n") and ("Picture" in out) is not bool(json)


def test_a_result_below_a_file_cannot_be_saved_and_says_why() -> None:
    with pytest.raises(
        NotADirectoryError, match=r"^demo\.yaml/x cannot be a directory.*demo\.yaml is a file$"
    ):
        run(load_scenario("demo.yaml")).save("demo.yaml/x")


# ---------------------------------------------------------------- what is printed of it


@pytest.mark.parametrize(
    "arguments",
    [
        ("validate", "a\x1b[31mb\nc.yaml"),
        ("validate", "keys.yaml"),
        ("run", "demo.yaml", "--set", "fleet.workers=3\nname: x"),
        ("run", "demo.yaml", "--set", "fleet.\x1b[31mw=3"),
        ("run", "demo.yaml", "--bogus\x1b[31m"),
    ],
    ids=ascii,
)
def test_no_text_of_the_user_moves_the_cursor(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("keys.yaml").write_text(DEMO + '"\\e[31mx\\ny": 1\n', encoding="utf-8")
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err[:-1].isprintable()


def test_validate_takes_changes_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["validate", "demo.yaml", "--set", "fleet.workers=3"]) == 0
    assert cli.main(["validate", "demo.yaml", "--set", "fleet.workers=x"]) == 2
    assert capsys.readouterr().err.startswith("--set fleet.workers=x: fleet.workers: found 'x'")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("run", "demo.yaml", "--no-save", "--html", "demo.yaml"),
            "--html demo.yaml: found the ending '.yaml'; must be .html or .htm\n",
        ),
        (("schema", "--out", "demo.yaml"), "--out demo.yaml: found the ending '.yaml'; must be .json\n"),
    ],
)
def test_a_scenario_given_as_an_output_by_mistake_is_not_replaced(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == message
    assert Path("demo.yaml").read_text(encoding="utf-8") == DEMO
