"""The life of a prompt between two fleets, as facts and actions."""

from __future__ import annotations

import random

import pytest

from dynamo_sim.serving.handoff import DESTINATION_FIRST, SOURCE_FIRST, Action, Fact, Handoff
from dynamo_sim.workload.request import Outcome, Request

ORDERS = {"vLLM": SOURCE_FIRST, "SGLang": DESTINATION_FIRST}


def started(engine: str) -> Handoff:
    handoff = Handoff(Request(0, 0.0, 8, 3), ORDERS[engine])
    handoff.start()
    return handoff


def test_vllm_computes_the_prompt_before_it_asks_for_a_destination() -> None:
    handoff = Handoff(Request(0, 0.0, 8, 3), SOURCE_FIRST)
    assert handoff.start() is Action.SUBMIT_PREFILL
    assert handoff.note(Fact.HELD) == (Action.RESERVE_DESTINATION,)
    assert handoff.note(Fact.RESERVED) == (Action.START_TRANSFER,)


def test_sglang_asks_for_a_destination_before_it_computes_the_prompt() -> None:
    handoff = Handoff(Request(0, 0.0, 8, 3), DESTINATION_FIRST)
    assert handoff.start() is Action.RESERVE_DESTINATION
    assert handoff.note(Fact.RESERVED) == (Action.SUBMIT_PREFILL,)
    assert handoff.note(Fact.HELD) == (Action.START_TRANSFER,)


@pytest.mark.parametrize("engine", ORDERS)
def test_after_the_transfer_the_destination_is_activated_before_the_source_is_released(engine: str) -> None:
    handoff = started(engine)
    handoff.note(Fact.HELD)
    handoff.note(Fact.RESERVED)
    assert handoff.note(Fact.TRANSFERRED) == (Action.ACTIVATE_DESTINATION,)
    assert handoff.note(Fact.ACTIVATED) == (Action.RELEASE_SOURCE,)
    assert handoff.note(Fact.RELEASED) == (Action.COMPLETE,)


def test_a_repeated_report_changes_nothing() -> None:
    handoff = started("vLLM")
    assert handoff.note(Fact.HELD)
    assert handoff.note(Fact.HELD) == ()


def test_a_rejected_prompt_fails_once_its_source_is_cleaned_up() -> None:
    handoff = started("vLLM")
    assert handoff.note(Fact.REJECTED) == (Action.CANCEL_SOURCE,)
    assert handoff.failure is Outcome.REJECTED
    assert handoff.note(Fact.SOURCE_CANCELLED) == (Action.FAIL,)


def test_a_refused_destination_cancels_both_sides_source_first() -> None:
    handoff = started("vLLM")
    handoff.note(Fact.HELD)
    assert handoff.note(Fact.REFUSED) == (Action.CANCEL_SOURCE, Action.CANCEL_DESTINATION)
    assert handoff.note(Fact.DESTINATION_CANCELLED) == ()
    assert handoff.note(Fact.SOURCE_CANCELLED) == (Action.FAIL,)
    assert handoff.failure is Outcome.FAILED


def test_a_destination_refused_at_arrival_has_no_source_to_cancel() -> None:
    handoff = started("SGLang")
    assert handoff.note(Fact.REFUSED) == (Action.CANCEL_DESTINATION,)
    assert handoff.note(Fact.DESTINATION_CANCELLED) == (Action.FAIL,)


def test_a_source_lost_before_its_kv_was_sent_fails_the_request() -> None:
    handoff = started("vLLM")
    handoff.note(Fact.HELD)
    handoff.note(Fact.RESERVED)
    assert handoff.note(Fact.SOURCE_LOST) == (Action.CANCEL_SOURCE, Action.CANCEL_DESTINATION)
    assert handoff.note(Fact.TRANSFERRED) == ()


def test_a_source_lost_after_its_kv_was_sent_is_not_missed() -> None:
    handoff = started("vLLM")
    for fact in (Fact.HELD, Fact.RESERVED, Fact.TRANSFERRED):
        handoff.note(fact)
    assert handoff.note(Fact.SOURCE_LOST) == ()
    assert handoff.failure is None
    assert handoff.note(Fact.ACTIVATED) == (Action.RELEASE_SOURCE,)


def test_a_lost_destination_frees_the_source() -> None:
    handoff = started("vLLM")
    for fact in (Fact.HELD, Fact.RESERVED, Fact.TRANSFERRED, Fact.ACTIVATED):
        handoff.note(fact)
    assert handoff.note(Fact.DESTINATION_LOST) == (Action.CANCEL_SOURCE, Action.CANCEL_DESTINATION)


REPORTS = {
    Action.SUBMIT_PREFILL: Fact.HELD,
    Action.RESERVE_DESTINATION: Fact.RESERVED,
    Action.START_TRANSFER: Fact.TRANSFERRED,
    Action.ACTIVATE_DESTINATION: Fact.ACTIVATED,
    Action.RELEASE_SOURCE: Fact.RELEASED,
    Action.CANCEL_SOURCE: Fact.SOURCE_CANCELLED,
    Action.CANCEL_DESTINATION: Fact.DESTINATION_CANCELLED,
}


@pytest.mark.parametrize("seed", range(200))
def test_every_handoff_ends_once_whatever_fails_and_when(seed: int) -> None:
    draw = random.Random(seed)
    handoff = Handoff(Request(0, 0.0, 8, 3), draw.choice(list(ORDERS.values())))
    facts = [REPORTS[handoff.start()]]
    ends = []
    while facts:
        if draw.random() < 0.15:
            facts.append(draw.choice([Fact.REJECTED, Fact.REFUSED, Fact.SOURCE_LOST, Fact.DESTINATION_LOST]))
        actions = handoff.note(facts.pop(draw.randrange(len(facts))))
        ends += [action for action in actions if action in (Action.COMPLETE, Action.FAIL)]
        facts += [REPORTS[action] for action in actions if action in REPORTS]
        if Action.COMPLETE in ends:
            break  # nobody reports to it any more
    assert ends == [Action.COMPLETE if handoff.failure is None else Action.FAIL]
