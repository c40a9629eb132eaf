"""What is wrong with a custom policy is one line that names their file and the line in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from dynamo_sim.autoscaling import (
    Decision,
    FleetView,
    Guarded,
    Loop,
    PolicyError,
    SchedulePolicy,
    StaticView,
    as_policy,
    load_policy,
)
from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.autoscaler.schedule import ScheduleScaling, TargetAt
from dynamo_sim.signals import Ended


def load(folder: Path, text: str, name: str = "P") -> Any:
    (folder / "mine_here.py").write_text(text, encoding="utf-8")
    sys.modules.pop("mine_here", None)
    return load_policy(f"mine_here:{name}", folder=folder)


def decide(policy: Any, now_s: float = 5.0) -> Decision:
    return Guarded(policy, "mine").decide(now_s, StaticView(), FleetView.of(2))


@pytest.mark.parametrize(
    ("attribute", "line"),
    [
        ("reads = ('kv_usage')", "reads: is a list of metrics, got 'kv_usage'; write ('kv_usage',)"),
        ("reads = 3", "reads: is a list of metrics, got 3"),
        ("reads = {'busy': 1}", "reads: is a list of metrics, got {'busy': 1}"),
        ("reads = ('buzy',)", "reads: there is no metric 'buzy'; did you mean 'busy'?"),
        ("reads = (1,)", "reads: has names of metrics and MetricQuery objects only, got 1"),
        ("loops = [None]", "loops: is a list of Loop objects, got [None]"),
        ("loops = 3", "loops: is a list of Loop objects, got 3"),
        ("loops = ()", "loops: is empty, so nothing would ever be evaluated"),
        ("period_s = 'x'", "period_s: a period is longer than 0 s (at least 0.01 s), got 'x'"),
        ("period_s = True", "period_s: a period is longer than 0 s (at least 0.01 s), got True"),
        ("first_at_s = 10**400", "first_at_s: the first evaluation is at 0 s or later, got 1000"),
        ("order = 'x'", "order: is a whole number, got 'x'"),
        (
            "reads = property(lambda self: 1 / 0)",
            "ZeroDivisionError: division by zero (mine_here.py, line 2)",
        ),
    ],
)
def test_what_a_policy_says_of_itself_is_checked_when_it_is_loaded(
    attribute: str, line: str, tmp_path: Path
) -> None:
    text = f"class P:\n    {attribute}\n    def decide(self, now_s, view, fleet):\n        return 1\n"
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, text)
    assert str(caught.value).startswith(f"policy mine_here:P: {line[:60]}")


def test_policies_of_loops_are_checked_too() -> None:
    class Several:
        loops = (Loop("one", object(), 5.0),)  # type: ignore[arg-type]

    with pytest.raises(ScenarioError, match="has no method decide"):
        as_policy(Several())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import sys\nsys.exit()\n", "its module cannot be imported: SystemExit (mine_here.py, line 2)"),
        ("x = 1\ny = x / 0\n", "imported: ZeroDivisionError: division by zero (mine_here.py, line 2)"),
        ("import nowhere_at_all\n", "named 'nowhere_at_all' (mine_here.py, line 1)"),
        ("x = \n", "SyntaxError: invalid syntax (mine_here.py, line 1)"),
        (
            "class P:\n    def __init__(self):\n        raise SystemExit\n    def decide(self, *_): ...\n",
            "it cannot be made with {}: SystemExit (mine_here.py, line 3)",
        ),
        ("from sys import exit as P\n", "'P' is not a class with a method decide(now_s, view, fleet)"),
    ],
)
def test_what_ends_python_or_breaks_while_a_policy_is_loaded_is_its_error(
    text: str, line: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, text)
    assert str(caught.value).endswith(line)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("return {}['a']", "raised KeyError: 'a' (mine_here.py, line 3)"),
        ("return view.value('buzy')", "did you mean 'busy'? (mine_here.py, line 3)"),
        ("import json; return json.loads('x')", "(char 0) (mine_here.py, line 3)"),
        ("raise GeneratorExit", "raised GeneratorExit (mine_here.py, line 3)"),
        ("raise BaseException('x')", "raised BaseException: x (mine_here.py, line 3)"),
    ],
)
def test_an_error_in_a_look_names_the_line_of_the_policy(statement: str, what: str, tmp_path: Path) -> None:
    policy = load(tmp_path, f"class P:\n    def decide(self, now_s, view, fleet):\n        {statement}\n")
    with pytest.raises(PolicyError) as caught:
        decide(policy)
    assert str(caught.value).endswith(what)


def test_the_end_of_a_run_by_a_signal_or_by_hand_is_no_error_of_a_policy() -> None:
    class Ends:
        def decide(self, now_s: float, view: Any, fleet: FleetView) -> None:
            raise Ended

    with pytest.raises(Ended):
        decide(Ends())


class Again:
    """Asks to be asked again after a wait."""

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s

    def decide(self, now_s: float, view: Any, fleet: FleetView) -> Decision:
        return Decision(3, next_at_s=now_s + self.wait_s)


def test_evaluations_closer_than_the_shortest_wait_are_refused() -> None:
    assert decide(Again(0.01), 1e6 + 0.07).next_at_s == pytest.approx(1e6 + 0.08)
    with pytest.raises(PolicyError) as caught:
        decide(Again(1e-9))
    assert str(caught.value) == (
        "the scaling policy mine at 5 s wants its next evaluation only 1e-09 s later (next_at_s=5.000000001); "
        "evaluations are at least 0.01 s apart"
    )


def test_targets_of_a_schedule_may_be_closer() -> None:
    steps = (TargetAt(t=5000.0, target=3), TargetAt(t=5000.25, target=4))
    assert decide(SchedulePolicy(ScheduleScaling(at_ms=steps))).next_at_s == 5.00025


def test_an_async_decide_is_refused_when_it_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="decide must be a plain function, not async"):
        load(tmp_path, "class P:\n    reads = ()\n    async def decide(self, now_s, view, fleet): return 2\n")
