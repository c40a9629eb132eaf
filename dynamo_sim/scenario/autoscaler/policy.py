"""Any scaling policy, by its `kind` (spec 10, 5 and 6)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from dynamo_sim.scenario.autoscaler.custom import CustomScaling
from dynamo_sim.scenario.autoscaler.dynamo_planner import DynamoPlannerScaling
from dynamo_sim.scenario.autoscaler.fixed import FixedScaling
from dynamo_sim.scenario.autoscaler.hpa import HpaScaling
from dynamo_sim.scenario.autoscaler.keda import KedaScaling
from dynamo_sim.scenario.autoscaler.kpa import KpaScaling
from dynamo_sim.scenario.autoscaler.manifest import ManifestScaling, named_by_its_manifest
from dynamo_sim.scenario.autoscaler.predictive import PredictiveScaling
from dynamo_sim.scenario.autoscaler.proportional import ProportionalScaling
from dynamo_sim.scenario.autoscaler.queue_proportional import QueueProportionalScaling
from dynamo_sim.scenario.autoscaler.schedule import ScheduleScaling
from dynamo_sim.scenario.autoscaler.sla import SlaScaling
from dynamo_sim.scenario.autoscaler.step_scaling import StepScaling
from dynamo_sim.scenario.autoscaler.target_tracking import TargetTrackingScaling

ScalingPolicy = Annotated[
    FixedScaling
    | ScheduleScaling
    | TargetTrackingScaling
    | StepScaling
    | ProportionalScaling
    | QueueProportionalScaling
    | PredictiveScaling
    | HpaScaling
    | KedaScaling
    | KpaScaling
    | SlaScaling
    | DynamoPlannerScaling
    | CustomScaling
    | ManifestScaling,
    Field(discriminator="kind"),
    BeforeValidator(named_by_its_manifest),
]
"""Add a policy by adding its model here, and how it is built in `dynamo_sim.autoscaling.build`."""
