"""Conditions on the figures of a run."""

from __future__ import annotations

import pytest

from dynamo_sim.report.figure_condition import FigureCondition

SUMMARY = {"within_sla": 0.98, "p99_ttft_ms": 512.0, "rejected_requests": 0}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("within_sla<0.99", True),
        ("within_sla < 98%", False),
        ("p99_ttft_ms>=512", True),
        ("p99_ttft_ms > 5.2e2", False),
        ("rejected_requests != 0", False),
    ],
)
def test_a_condition_compares_a_figure_with_a_number(text: str, holds: bool) -> None:
    assert FigureCondition.parse(text).holds(SUMMARY) is holds


@pytest.mark.parametrize(
    "text", ["", "within_sla", "within_sla = 1", "0.9 < within_sla", "within_sla < 0.9.9"]
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a figure of the summary"):
        FigureCondition.parse(text)


def test_an_unknown_figure_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ValueError, match="did you mean one of 'mean_itl_ms', 'p99_itl_ms'"):
        FigureCondition.parse("itl > 5").holds({"mean_itl_ms": 1.0, "p99_itl_ms": 2.0, "other": 3.0})
    with pytest.raises(ValueError, match="did you mean 'p99_ttft_ms'"):
        FigureCondition.parse("p99_tfft_ms > 1").holds(SUMMARY)
    with pytest.raises(ValueError, match="the scenario has no sla"):
        FigureCondition.parse("within_sla < 1").holds({})
