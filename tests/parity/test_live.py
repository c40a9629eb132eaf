"""Random cases, answered here and by the compiled reference.

Needs the ``parity`` extra, or an interpreter that has it in ``DYNAMO_SIM_REFERENCE_PYTHON``.
``DYNAMO_SIM_PARITY_CASES`` says how many cases (default 200), ``DYNAMO_SIM_PARITY_SEED`` which ones.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.parity import random_disaggregated, random_router_cases
from tests.parity.answer import answer
from tests.parity.compare import differences
from tests.parity.random_cases import build
from tests.parity.reference import Reference, interpreter
from tests.parity.router_draws import drawing_as, workers_of

COUNT = int(os.environ.get("DYNAMO_SIM_PARITY_CASES", "200"))
SEED = int(os.environ.get("DYNAMO_SIM_PARITY_SEED", "1"))
TWO_FLEETS_COUNT = COUNT * 2 // 5
"""Fewer of the cases with two fleets: one in twenty makes the reference hang, which costs the whole time limit."""


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    python = interpreter()
    if python is None:
        pytest.skip("the reference is not installed (pip install '.[parity]')")
    running = Reference(python)
    yield running
    running.close()


@pytest.mark.live
def test_random_cases_get_the_reference_s_answers(reference: Reference) -> None:
    differing = []
    tally: Counter[str] = Counter()
    for index in range(COUNT):
        case = build(SEED, index)
        actual = answer(case)
        expected = reference.answer(case)
        if expected is None:  # it panicked or hung: here that must be an error, or a run without its trap
            tally["no answer"] += 1
        elif found := differences(expected, actual):
            differing.append(f"{case['name']}: {found[0]} ({len(found)} differences)")
        else:
            tally["error" if "error" in expected else "equal"] += 1
    assert not differing, "\n".join(differing)
    assert tally["equal"] >= COUNT * 0.8, tally


@pytest.mark.live
def test_random_cases_with_two_fleets_get_the_reference_s_answers(reference: Reference) -> None:
    differing = []
    tally: Counter[str] = Counter()
    for index in range(TWO_FLEETS_COUNT):
        case = random_disaggregated.build(SEED, index)
        actual = answer(case)
        expected = reference.answer(case)
        if expected is None:  # small pools make it hang; here that is an error
            tally["no answer"] += 1
        elif found := differences(expected, actual):
            differing.append(f"{case['name']}: {found[0]} ({len(found)} differences)")
        else:
            tally["error" if "error" in expected else "equal"] += 1
        if actual != answer(case, max_stretch_passes=1) and "error" not in actual:
            differing.append(f"{case['name']}: another answer without stretches")
    assert not differing, "\n".join(differing)
    assert tally["equal"] >= TWO_FLEETS_COUNT * 0.7, tally


@pytest.mark.live
def test_random_router_cases_get_the_reference_s_answers(reference: Reference) -> None:
    """Where costs tie, the reference draws anew in every run: its rows say what it drew, and it is drawn here too."""
    differing = []
    tally: Counter[str] = Counter()
    for index in range(COUNT):
        case = random_router_cases.build(SEED, index)
        with drawing_as() as draws:
            actual = answer(case)
        expected = reference.answer(case)
        if expected is None:
            tally["no answer"] += 1
            continue
        found = differences(expected, actual, up_to_worker_names=draws.ties > 0)
        if found and draws.ties:
            chosen = workers_of(expected, len(case["workload"].get("records", ())))
            if chosen is None:
                tally["drawn in another way"] += 1
                continue
            with drawing_as(chosen) as draws:
                found = differences(expected, answer(case))
            found += [f"{request} was not among the cheapest" for request in draws.wrong]
        if found:
            differing.append(f"{case['name']}: {found[0]} ({len(found)} differences)")
        else:
            tally["with ties" if draws.ties else "without ties"] += 1
    assert not differing, "\n".join(differing)
    assert tally["with ties"] >= COUNT * 0.2 and tally["without ties"] >= COUNT * 0.25, tally
