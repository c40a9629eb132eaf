"""What a command writes is put in place whole, whatever comes in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dynamo_sim import cli, signals
from dynamo_sim.files import drafts as module
from dynamo_sim.files.drafts import Drafts, whole_file
from tests.helpers import DEMO, heed_signals

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo.yaml").write_text(DEMO, encoding="utf-8")


def contents(folder: str = ".") -> dict[str, str]:
    return {path.name: path.read_text(errors="replace") for path in Path(folder).iterdir() if path.is_file()}


def write(drafts: Drafts, text: str, *names: str) -> None:
    draft = drafts.folder(Path("out").resolve(), ("a", "b", "c"))
    for name in names:
        (draft / name).write_text(text)


def test_a_folder_keeps_what_else_it_holds_and_loses_what_is_not_written_again() -> None:
    for text, names in (("old", "ab"), ("new", "bc")):
        with Drafts() as drafts:
            write(drafts, text, *names)
        Path("out/note.txt").write_text("mine")
    assert contents("out") == {"b": "new", "c": "new", "note.txt": "mine"}


def test_nothing_is_put_in_place_after_an_error() -> None:
    with pytest.raises(RuntimeError), Drafts() as drafts:
        drafts.file("page.html").write_text("page")
        write(drafts, "new", "a")
        raise RuntimeError
    assert [path.name for path in Path().iterdir()] == ["demo.yaml"]


@pytest.mark.parametrize("at", range(1, 11))
def test_a_signal_among_the_renames_waits_until_all_are_done(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ["run", "demo.yaml", "--quiet", "--out", "out", "--html", "page.html"]
    assert cli.main(run) == 0
    old_page = Path("page.html").read_text()
    replace, calls = os.replace, []

    def and_a_signal(*places: Any) -> None:
        replace(*places)
        calls.append(places)
        if len(calls) == at:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(os, "replace", and_a_signal)
    changes = ["--set", "seed=2", "--set", "workload.request_count=9", "--set", "fleet.workers=3"]
    ended = cli.main([*run, *changes])
    assert ended == (143 if at <= len(calls) else 0)
    assert '"seed": 2' in contents("out")["meta.json"]
    assert '"num_requests": 9' in contents("out")["summary.json"]
    assert contents("out")["requests.csv"].count("\n") == 10
    assert Path("page.html").read_text() != old_page
    assert not list(Path().glob(".*"))


SECOND = """
import sys
from dynamo_sim import cli
sys.exit(cli.main(["run", "demo.yaml", "--quiet", "--out", "out", "--set", "seed=3", "--set",
                   "workload.request_count=7", "--set", "report.requests_format=parquet"]))
"""


@pytest.mark.skipif(module.fcntl is None, reason="needs locks")
@pytest.mark.parametrize("there_before", [True, False])
def test_two_runs_into_one_folder_follow_one_another(
    there_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ["run", "demo.yaml", "--quiet", "--out", "out"]
    if there_before:
        assert cli.main(run) == 0
    put, others = module._put_folder, []

    def while_another_runs(*what: Any) -> None:
        others.append(
            subprocess.Popen([sys.executable, "-c", SECOND], env={**os.environ, "PYTHONPATH": str(ROOT)})
        )
        deadline = time.monotonic() + 60
        while len(list(Path().glob(".out.*.tmp"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        put(*what)

    monkeypatch.setattr(module, "_put_folder", while_another_runs)
    assert cli.main([*run, "--set", "seed=2"]) == 0
    assert others[0].wait(timeout=60) == 0
    assert (
        '"seed": 3' in contents("out")["meta.json"] and '"num_requests": 7' in contents("out")["summary.json"]
    )
    assert Path("out/requests.parquet").exists() and not Path("out/requests.csv").exists()


KILLED = """
import os, signal
from dynamo_sim.files.drafts import Drafts
with Drafts() as drafts:
    drafts.file("page.html").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(module.fcntl is None, reason="needs locks")
def test_the_draft_of_a_killed_process_is_removed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(
        [sys.executable, "-c", KILLED], env={**os.environ, "PYTHONPATH": str(ROOT)}, preexec_fn=heed_signals
    )
    assert len(list(Path().glob(".page.html.*.tmp"))) == 1
    with whole_file("page.html") as draft:
        assert len(list(Path().glob(".page.html.*.tmp"))) == 2  # it could be of a process that has just begun
        draft.write_text("whole")
    monkeypatch.setattr(module, "ABANDONED_S", 0.0)
    with whole_file("page.html") as draft, whole_file("page.html") as other:
        assert len(list(Path().glob(".page.html.*.tmp"))) == 2
        draft.write_text("first")
        other.write_text("second")
    assert contents()["page.html"] == "first" and not list(Path().glob(".*"))


def test_a_signal_that_was_held_back_is_raised_by_the_next_check() -> None:
    with signals.heeding_signals():
        with signals.held_back():
            os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(signals.Ended, match="terminated"):
            signals.check()
