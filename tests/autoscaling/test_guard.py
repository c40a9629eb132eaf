"""No answer of a policy reaches the fleet unchecked, and custom policies are found and checked (`spec 10, 1`)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamo_sim.autoscaling import (
    Bounds,
    Decision,
    FixedPolicy,
    FleetView,
    Guarded,
    PolicyError,
    StaticView,
    View,
    as_policy,
    load_policy,
)
from dynamo_sim.errors import ScenarioError, SimulationError
from dynamo_sim.scenario.autoscaler.fixed import FixedScaling


class Says:
    """A policy that always gives one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_what_a_policy_read_is_recorded_where_it_does_not_say() -> None:
    class Halfway:
        def decide(self, now_s: float, view: View, fleet: FleetView) -> int:
            return fleet.effective + (
                (view.value("kv_usage") or 0.0) > 0.5 and len(view.per_worker("waiting"))
            )

    view = StaticView({"kv_usage": 0.75}, {"waiting": {0: 2.0, 1: 4.0}})
    decision = Guarded(Halfway(), "halfway").decide(5.0, view, FleetView.of(2))
    assert (decision.target, decision.desired) == (4, 4)
    assert decision.values == {"avg kv_usage": 0.75, "avg waiting": 3.0}


def ask(answer: Any, **more: Any) -> Decision:
    return Guarded(Says(answer), "mine:Policy", **more).decide(35.0, StaticView(), FleetView.of(2))


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (ValueError("no luck"), "raised ValueError: no luck"),
        (KeyError("x"), "raised KeyError: 'x'"),
        (ZeroDivisionError(), "raised ZeroDivisionError"),
        (math.nan, "target of nan"),
        (math.inf, "target of inf"),
        (-1, "target of -1, below 0"),
        (Decision(-3), "target of -3, below 0"),
        (2.5, "target of 2.5, a fraction"),
        (Decision(2.5), "a fraction"),  # type: ignore[arg-type]
        (10**30, "1e+30 workers, more than 100000"),
        (10**400, "more than 1e300 workers"),
        (1e200, "1e+200 workers"),
        ("3", "not a number of workers"),
        (True, "not a number of workers"),
        ([3], "not a number of workers"),
        (np.float64("nan"), "target of nan"),
        (Decision(3, next_at_s=35.0), "next evaluation"),
        (Decision(3, next_at_s=math.nan), "next evaluation"),
        (Decision(3, next_at_s=np.int64(30)), "next evaluation"),  # type: ignore[arg-type]
        (Decision(3, next_at_s="x"), "next evaluation"),  # type: ignore[arg-type]
        (ValueError("one\ntwo"), "raised ValueError: one two"),
        (np.bool_(True), "not a number of workers"),
        (np.array(3), "array(3), which is not a number of workers"),
        (Decision(3, desired="x"), "whose desired is 'x'; it must be a whole number or None"),  # type: ignore[arg-type]
        (Decision(3, stabilised=math.nan), "whose stabilised is nan"),  # type: ignore[arg-type]
        (
            Decision(3, desired=10**400),
            "returned desired=more than 1e300 workers; is a target, or the scale of its metric",
        ),
        (Decision(3, stabilised=-(2**70)), "returned stabilised=-1.18059e+21 workers; is a target"),
        (
            Decision(200_000),
            "or None for no change; is a target, or the scale of its metric, in the wrong unit?",
        ),
        (Decision(3, values=[1]), "whose values is [1]; it must be a mapping"),  # type: ignore[arg-type]
        (Decision(3, values={5: 1.0}), "whose values is {5: 1.0}"),  # type: ignore[dict-item]
        (Decision(3, values={"a": [1]}), "a mapping from names to numbers, texts or None"),  # type: ignore[dict-item]
        (Decision(3, values={"a": 10**400}), "a mapping from names to numbers, texts or None"),
        (Decision(3, values={"\ud800": 1.0}), "whose values is"),
        (Decision(3, reason="\ud800"), "whose reason is"),
        (Decision(3, events=("\ud800",)), "whose events is"),
        (Decision(3, events=(1,)), "whose events is (1,); it must be a tuple of texts"),  # type: ignore[arg-type]
        (Decision(3, events=None), "whose events is None"),  # type: ignore[arg-type]
        (Decision(3, 5), "whose reason is 5; it must be a text"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_answer_names_the_policy_and_the_time(answer: Any, what: str) -> None:
    with pytest.raises(PolicyError) as caught:
        ask(answer, bounds=Bounds(0, 10))
    text = str(caught.value)
    assert what in text and "mine:Policy" in text and "at 35 s" in text
    assert isinstance(caught.value, SimulationError)
    assert (caught.value.policy, caught.value.at_s) == ("mine:Policy", 35.0)


class OwnCount(int):
    """A whole number of a type that somebody wrote."""


@pytest.mark.parametrize(
    "answer",
    [4, 4.0, OwnCount(4), np.int64(4), np.float32(4), np.float64(4), Decision(4), Decision(4.0)],  # type: ignore[arg-type]
)
def test_whole_numbers_of_any_type_are_targets(answer: Any) -> None:
    target = ask(answer).target
    assert target == 4 and type(target) is int


@pytest.mark.parametrize(
    ("asked", "at_s"),
    [(40, 40.0), (np.int64(40), 40.0), (np.float32(40), 40.0), (10**400, math.inf), (None, None)],
)
def test_the_next_look_may_be_a_number_of_any_type(asked: Any, at_s: float | None) -> None:
    following = ask(Decision(3, next_at_s=asked)).next_at_s
    assert following == at_s and (following is None or type(following) is float)


def test_no_opinion_stays_no_opinion() -> None:
    assert ask(None, bounds=Bounds(5, 9)).target is None
    assert ask(Decision(None, "why")).reason == "why"


def test_bounds_apply_after_the_policy_and_the_budget_last() -> None:
    assert ask(1, bounds=Bounds(2, 5)).target == 2
    assert ask(9, bounds=Bounds(2, 5)) == Decision(5, "lowered to max", desired=9)
    within = ask(9, bounds=Bounds(2, 5), budget=lambda workers: min(workers, 3))
    assert (within.target, within.reason) == (3, "lowered to max, GPU budget")
    with pytest.raises(ValueError, match="below the smallest"):
        Bounds(4, 3)


def test_a_policy_of_a_file_beside_the_scenario_is_found(tmp_path: Path) -> None:
    (tmp_path / "my_scaling_rules.py").write_text(
        "class Doubler:\n"
        "    def __init__(self, factor=2):\n"
        "        self.factor = factor\n"
        "    def decide(self, now_s, view, fleet):\n"
        "        return fleet.effective * self.factor\n",
        encoding="utf-8",
    )
    policy = load_policy("my_scaling_rules:Doubler", {"factor": 3}, folder=tmp_path)
    assert Guarded(policy, "it").decide(0.0, StaticView(), FleetView.of(2, 1)).target == 9
    for name, options, what in (
        ("my_scaling_rules:Missing", {}, "has no 'Missing'"),
        ("my_scaling_rules:Doubler", {"factr": 1}, "cannot be made"),
        ("no_such_module_here:X", {}, "no module 'no_such_module_here'"),
        ("my_scaling_rules", {}, "module:Class"),
    ):
        with pytest.raises(ScenarioError, match=what):
            load_policy(name, options, folder=tmp_path)


def test_what_is_no_policy_class_is_never_called(tmp_path: Path) -> None:
    made = tmp_path / "made"
    for name, options in (("os:mkdir", {"path": str(made)}), ("pathlib:Path", {})):
        with pytest.raises(ScenarioError, match="is not a class with a method decide"):
            load_policy(name, options)
    assert not made.exists()


def test_modules_of_one_name_beside_two_scenarios_are_told_apart(tmp_path: Path) -> None:
    for folder, count in (("one", 3), ("two", 5)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rules_helper.py").write_text(f"COUNT = {count}\n", encoding="utf-8")
        (tmp_path / folder / "same_name.py").write_text(
            "import rules_helper\n"
            "class Mine:\n"
            "    def decide(self, now_s, view, fleet):\n"
            "        return rules_helper.COUNT\n",
            encoding="utf-8",
        )
    policies = [load_policy("same_name:Mine", folder=tmp_path / folder) for folder in ("one", "two", "one")]
    assert [policy.decide(0.0, StaticView(), FleetView()) for policy in policies] == [3, 5, 3]


def test_a_module_that_a_loaded_one_hides_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pathlib.py").write_text("", encoding="utf-8")
    with pytest.raises(
        ScenarioError, match="another module 'pathlib' is loaded already; give yours another name"
    ):
        load_policy("pathlib:Mine", folder=tmp_path)


def test_a_module_that_breaks_says_how(tmp_path: Path) -> None:
    (tmp_path / "breaks_on_import.py").write_text("1 / 0\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="ZeroDivisionError"):
        load_policy("breaks_on_import:X", folder=tmp_path)


def test_an_object_is_a_policy_when_it_can_decide() -> None:
    assert (
        as_policy(FixedPolicy(FixedScaling(count=3))).decide(0.0, StaticView(), FleetView.of(1)) is not None
    )
    for candidate, what in ((object(), "no method decide"), (FixedPolicy, "is a class")):
        with pytest.raises(ScenarioError, match=what):
            as_policy(candidate)

    class TooFew:
        def decide(self, now_s: float) -> int:
            return 1

    with pytest.raises(ScenarioError, match="must take"):
        as_policy(TooFew())
