"""Scales for a forecast (spec 10, 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from dynamo_sim.scenario.autoscaler.custom import CustomScaling
from dynamo_sim.scenario.autoscaler.hpa import HpaScaling
from dynamo_sim.scenario.autoscaler.manifest import ManifestScaling, named_by_its_manifest
from dynamo_sim.scenario.autoscaler.parts import MetricSpec, PerWorker, PolicySpec, Positive
from dynamo_sim.scenario.autoscaler.proportional import ProportionalScaling
from dynamo_sim.scenario.autoscaler.queue_proportional import QueueProportionalScaling
from dynamo_sim.scenario.autoscaler.step_scaling import StepScaling
from dynamo_sim.scenario.autoscaler.target_tracking import TargetTrackingScaling
from dynamo_sim.scenario.base import Path, PositiveCount

FloorPolicy = Annotated[
    TargetTrackingScaling
    | StepScaling
    | ProportionalScaling
    | QueueProportionalScaling
    | HpaScaling
    | CustomScaling
    | ManifestScaling,
    Field(discriminator="kind"),
    BeforeValidator(named_by_its_manifest),
]


class PredictiveScaling(MetricSpec, PolicySpec):
    """Scales for the forecast of a metric; never below what a reactive policy wants."""

    kind: Literal["predictive"] = "predictive"
    """Kind of policy."""

    per_worker: PerWorker
    """How much of the metric, as a total of the fleet, one worker can do."""

    bin_s: Annotated[float, Field(ge=0.01)]
    """Length of a bin of its history."""

    floor_policy: FloorPolicy
    """The reactive policy; it is evaluated whenever this one is."""

    horizon_s: Positive | None = None
    """How far ahead; null = the startup time, in whole bins."""

    method: Literal["holt_winters", "seasonal_naive", "linear"] = "holt_winters"
    """How to forecast; holt_winters needs the package statsmodels."""

    season_bins: PositiveCount | None = None
    """Length of a season; null = none."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if self.method == "seasonal_naive" and self.season_bins is None:
            yield ("season_bins",), "missing; method 'seasonal_naive' needs it"
