"""The conditions of ``--fail-on``, and which figures a run has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dynamo_sim.errors import ScenarioError

if TYPE_CHECKING:
    from dynamo_sim.report.figure_condition import FigureCondition
    from dynamo_sim.scenario.sections import Sla


OF_ANY_RUN = (
    "completed_requests",
    "rejected_requests",
    "failed_requests",
    "unfinished_requests",
    "within_sla_requests",
    "within_sla",
    "scale_changes",
    "peak_workers",
    "mean_workers",
    "gpu_hours",
)
"""Figures that a run has of which nobody got a token."""


def figure_of(figures: Mapping[str, float], name: str) -> float | None:
    """A figure of a run; None where it is not there, and for a latency or rate that nobody had."""
    return figures.get(name) if figures["completed_requests"] or name in OF_ANY_RUN else None


def failures(conditions: Sequence[FigureCondition], summary: Mapping[str, float]) -> list[str]:
    """What there is to say of each condition that holds, and of each about a figure that this run does not have."""
    found = []
    for condition in conditions:
        figure = figure_of(summary, condition.figure)
        if figure is None:
            found.append(f"{condition}: there is no such figure, no request was completed")
        elif condition.holds(summary):
            found.append(f"{condition}: it is {figure:,.6g}")
    return found


def conditions_on(slas: Sequence[Sla], texts: Sequence[str]) -> list[FigureCondition]:
    """The conditions, each about a figure that the summary of every scenario with one of these ``slas`` will have.

    Raises:
        ScenarioError: a text is no condition, or there is no such figure.
    """
    if not texts:
        return []
    from dynamo_sim.records.records import RunRecords
    from dynamo_sim.report.figure_condition import FigureCondition
    from dynamo_sim.report.summary import summarise

    summaries = [summarise(RunRecords(), sla, wall_time_ms=1.0) for sla in slas]
    conditions = []
    for text in texts:
        try:
            condition = FigureCondition.parse(text)
            for figures in summaries:
                condition.holds(figures)
        except ValueError as error:
            raise ScenarioError(f"--fail-on: {error}") from None
        conditions.append(condition)
    return conditions
