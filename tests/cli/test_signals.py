"""A command that a signal ends leaves nothing half done, and never looks as if it had gone well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dynamo_sim import cli
from dynamo_sim.errors import ScenarioError
from tests.helpers import DEMO, heed_signals

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("demo.yaml").write_text(DEMO, encoding="utf-8")


LOST_SIGNAL = """
import os, sys, time
from dynamo_sim import cli
from dynamo_sim.report import {module}

class Finalised:
    def __del__(self):
        os.kill(os.getpid(), {number})
        time.sleep(0.01)  # here the handler raises, and Python drops it

whole = {module}.{name}

def with_a_signal(*what):
    Finalised()
    return whole(*what)

{module}.{name} = with_a_signal
sys.exit(cli.main(["run", "demo.yaml", "--out", "out", "--html", "page.html"]))
"""


@pytest.mark.parametrize(
    ("number", "words"),
    [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated"), (signal.SIGHUP, "hung up")],
)
@pytest.mark.parametrize(("module", "name"), [("saving", "_write"), ("html", "page")])
def test_a_signal_that_python_drops_still_ends_the_run(
    number: signal.Signals, words: str, module: str, name: str
) -> None:
    code = LOST_SIGNAL.format(number=int(number), module=module, name=name)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=heed_signals,
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", f"{words}\n")
    assert [path.name for path in Path().iterdir()] == ["demo.yaml"]


def test_a_signal_while_the_page_is_drawn_leaves_no_results_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def page(result: object) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("it went on")

    monkeypatch.setattr("dynamo_sim.report.html.page", page)
    assert cli.main(["run", "demo.yaml", "--out", "out", "--html", "page.html"]) == 143
    assert [path.name for path in Path().iterdir()] == ["demo.yaml"]


def test_an_error_that_a_signal_was_taken_for_does_not_hide_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(*_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except BaseException as error:
            raise ScenarioError("the policy raised") from error

    monkeypatch.setattr("dynamo_sim.scenario.load_scenario", load)
    assert cli.main(["run", "demo.yaml"]) == 143
    assert capsys.readouterr().err == "terminated\n"


def test_signals_are_as_before_when_a_command_is_done() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert cli.main(["validate", "demo.yaml"]) == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_a_lack_of_memory_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("dynamo_sim.scenario.load_scenario", load)
    assert cli.main(["run", "demo.yaml"]) == 1
    assert capsys.readouterr().err.startswith("out of memory: ")
