"""Every golden case with two fleets: the reference's answer, with stretches and without."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.engine.sglang.scheduler import SglangScheduler
from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from dynamo_sim.errors import DynamoSimError
from tests.parity.cases import Case, golden, topics
from tests.parity.compare import differences
from tests.parity.disaggregated import answer
from tests.parity.test_golden import finish_and_check

CASES = [
    pytest.param(case, id=f"{topic}/{case['name']}")
    for topic in topics()
    for case in golden(topic)
    if "prefill" in case
]


def answer_or_error(case: Case, max_passes: int = 1_000_000) -> dict[str, Any]:
    try:
        return answer(case, max_passes)
    except DynamoSimError as error:
        return {"error": str(error)}


@pytest.mark.parametrize("case", CASES)
def test_a_golden_case_with_two_fleets_gets_the_reference_s_answer(case: Case) -> None:
    assert not differences(case["expected"], answer_or_error(case))


@pytest.mark.parametrize("case", CASES)
def test_stretches_of_a_decode_fleet_change_no_bit(case: Case) -> None:
    assert answer_or_error(case, max_passes=1) == answer_or_error(case)


@pytest.mark.parametrize("case", CASES)
def test_every_block_of_both_fleets_is_accounted_for(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for scheduler in (VllmScheduler, SglangScheduler):
        monkeypatch.setattr(scheduler, "finish", finish_and_check(scheduler))
    answer_or_error(case, max_passes=1)
