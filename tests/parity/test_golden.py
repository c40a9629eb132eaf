"""Every golden case: the reference's answer, and the same answer to the bit without stretches and without lockstep."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.engine.sglang.scheduler import SglangScheduler
from dynamo_sim.engine.step import Step
from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from tests.parity.answer import answer
from tests.parity.cases import Case, golden, topics
from tests.parity.compare import differences

CASES = [pytest.param(case, id=f"{topic}/{case['name']}") for topic in topics() for case in golden(topic)]


@pytest.mark.parametrize("case", CASES)
def test_a_golden_case_gets_the_reference_s_answer(case: Case) -> None:
    actual = answer(case)
    if actual.get("error", "").startswith("unsupported: "):
        pytest.skip(actual["error"])
    draws = case.get("router_mode") == "kv_router"
    assert not differences(case["expected"], actual, up_to_worker_names=draws)


@pytest.mark.parametrize("case", CASES)
def test_stretches_change_no_bit(case: Case) -> None:
    with_stretches = answer(case)
    without = answer(case, max_stretch_passes=1)
    assert without == with_stretches


@pytest.mark.parametrize(
    "case", [p for p in CASES if p.values[0].get("engine", {}).get("engine_type") != "sglang"]
)
def test_lockstep_changes_no_bit(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    in_groups = answer(case)
    one_by_one = VllmScheduler.__init__

    def without_lockstep(self: VllmScheduler, *args: object, **more: object) -> None:
        one_by_one(self, *args, **more, lockstep=False)  # type: ignore[arg-type]

    monkeypatch.setattr(VllmScheduler, "__init__", without_lockstep)
    assert answer(case) == in_groups


@pytest.mark.parametrize("case", CASES)
def test_the_books_of_the_cache_agree_after_every_pass(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for scheduler in (VllmScheduler, SglangScheduler):
        monkeypatch.setattr(scheduler, "finish", finish_and_check(scheduler))
    answer(case, max_stretch_passes=1)


def finish_and_check(scheduler: Any) -> Any:
    """The `finish` of a scheduler, followed by a check of its books."""
    finish = scheduler.finish

    def finish_then_check(self: Any, step: Step) -> None:
        finish(self, step)
        self.check()

    return finish_then_check
