"""Golden cases with two fleets: what `test_golden` does not look at."""

from __future__ import annotations

import pytest

from dynamo_sim.engine.sglang.scheduler import SglangScheduler
from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from tests.parity.answer import answer
from tests.parity.cases import Case, golden, topics
from tests.parity.test_golden import finish_and_check

CASES = [
    pytest.param(case, id=f"{topic}/{case['name']}")
    for topic in topics()
    for case in golden(topic)
    if "prefill" in case
]


@pytest.mark.parametrize("case", CASES)
def test_every_block_of_both_fleets_is_accounted_for(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for scheduler in (VllmScheduler, SglangScheduler):
        monkeypatch.setattr(scheduler, "finish", finish_and_check(scheduler))
    answer(case, max_stretch_passes=1)
