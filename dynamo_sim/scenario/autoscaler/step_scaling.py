"""Alarms with steps (spec 10, 0 and 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from dynamo_sim.limits import MAX_WORKERS
from dynamo_sim.scenario.autoscaler.parts import MetricSpec, PolicySpec
from dynamo_sim.scenario.base import Count, NonNegative, Path, PositiveCount, Problems, Spec

MAX_ADJUSTED = 100.0 * MAX_WORKERS
"""Workers or percent of a step."""


class StepSpec(Spec):
    """An adjustment while the distance from the threshold lies between two bounds."""

    lower: float | None = None
    """Smallest distance; null = open."""

    upper: float | None = None
    """Largest distance; null = open."""

    adjustment: Annotated[float, Field(ge=-MAX_ADJUSTED, le=MAX_ADJUSTED)]
    """Workers, or percent of them."""

    @model_validator(mode="after")
    def _check_bounds(self) -> StepSpec:
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise Problems(
                [(("upper",), f"found {self.upper:g}; must be above lower, which is {self.lower:g}")]
            )
        return self


class AlarmSpec(MetricSpec):
    """An alarm and its steps."""

    threshold: float
    """Breached at or above it (up), at or below it (down)."""

    direction: Literal["up", "down"]
    """Which way a breach scales."""

    steps: tuple[StepSpec, ...] = Field(strict=False, json_schema_extra={"minItems": 1})
    """What to do, by the distance from the threshold."""

    adjustment_type: Literal["ChangeInCapacity", "ExactCapacity", "PercentChangeInCapacity"] = (
        "ChangeInCapacity"
    )
    """What an adjustment is."""

    min_adjustment_magnitude: Count = 0
    """Least change of a percentage, in workers."""

    evaluation_periods: PositiveCount = 1
    """How many of the last evaluations count; an evaluation is a period of one minute by default."""

    datapoints: PositiveCount | None = None
    """How many of them must breach; null = all."""

    @model_validator(mode="after")
    def _check_alarm(self) -> AlarmSpec:
        found: list[tuple[Path, str]] = []
        if not self.steps:
            found.append((("steps",), "must have at least 1 item"))
        if self.datapoints is not None and self.datapoints > self.evaluation_periods:
            found.append(
                (
                    ("datapoints",),
                    f"found {self.datapoints}; must be at most evaluation_periods, {self.evaluation_periods}",
                )
            )
        if self.adjustment_type != "PercentChangeInCapacity":
            for position, step in enumerate(self.steps):
                if not step.adjustment.is_integer():
                    found.append(
                        (
                            ("steps", position, "adjustment"),
                            f"found {step.adjustment:g}; must be a whole number of workers",
                        )
                    )
        if found:
            raise Problems(found)
        return self


class StepScaling(PolicySpec):
    """Alarms with steps, as step scaling of AWS has them."""

    kind: Literal["step_scaling"] = "step_scaling"
    """Kind of policy."""

    alarms: tuple[AlarmSpec, ...] = Field(strict=False, json_schema_extra={"minItems": 1})
    """The alarms; the largest of their targets counts."""

    warmup_s: NonNegative = 300.0
    """How long a worker, once ready, is no capacity yet; nothing is scaled in meanwhile."""

    scale_in_cooldown_s: NonNegative = 300.0
    """Least time between two scale-ins; a scale-out ends it."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if not self.alarms:
            yield ("alarms",), "must have at least 1 item"
