"""The `autoscaler` section of a scenario: who scales the fleet, when, and from which numbers (spec 10).

One module a policy, as in `dynamo_sim.autoscaling.policies`; all models can be imported from here.
"""

from __future__ import annotations

from dynamo_sim.scenario.autoscaler.behavior import BehaviorSpec, DirectionSpec, RuleSpec
from dynamo_sim.scenario.autoscaler.custom import CustomScaling
from dynamo_sim.scenario.autoscaler.dynamo_planner import DynamoPlannerScaling
from dynamo_sim.scenario.autoscaler.fixed import FixedScaling
from dynamo_sim.scenario.autoscaler.hpa import HpaMetricSpec, HpaScaling
from dynamo_sim.scenario.autoscaler.keda import (
    CronTriggerSpec,
    FallbackBehavior,
    FallbackSpec,
    KedaScaling,
    MetricTriggerSpec,
    ModifiersSpec,
    ScaledObjectKeys,
    TriggerSpec,
)
from dynamo_sim.scenario.autoscaler.kpa import KpaScaling
from dynamo_sim.scenario.autoscaler.manifest import (
    FromManifest,
    HpaFlags,
    ManifestKeys,
    ManifestScaling,
    ManifestSource,
)
from dynamo_sim.scenario.autoscaler.metrics import MetricsSection
from dynamo_sim.scenario.autoscaler.parts import (
    AnyMetric,
    CronExpression,
    HistogramName,
    MetricName,
    MetricSpec,
    Moment,
    PolicySpec,
    TimeZone,
    Workers,
)
from dynamo_sim.scenario.autoscaler.policy import ScalingPolicy
from dynamo_sim.scenario.autoscaler.predictive import FloorPolicy, PredictiveScaling
from dynamo_sim.scenario.autoscaler.proportional import ProportionalScaling
from dynamo_sim.scenario.autoscaler.queue_proportional import QueueProportionalScaling
from dynamo_sim.scenario.autoscaler.schedule import CronEntry, ScheduleScaling, TargetAt
from dynamo_sim.scenario.autoscaler.section import Autoscaler, FleetAutoscaler
from dynamo_sim.scenario.autoscaler.sla import SlaScaling
from dynamo_sim.scenario.autoscaler.step_scaling import AlarmSpec, StepScaling, StepSpec
from dynamo_sim.scenario.autoscaler.target_tracking import TargetTrackingScaling

__all__ = [
    "AlarmSpec",
    "AnyMetric",
    "Autoscaler",
    "BehaviorSpec",
    "CronEntry",
    "CronExpression",
    "CronTriggerSpec",
    "CustomScaling",
    "DirectionSpec",
    "DynamoPlannerScaling",
    "FallbackBehavior",
    "FallbackSpec",
    "FixedScaling",
    "FleetAutoscaler",
    "FloorPolicy",
    "FromManifest",
    "HistogramName",
    "HpaFlags",
    "HpaMetricSpec",
    "HpaScaling",
    "KedaScaling",
    "KpaScaling",
    "ManifestKeys",
    "ManifestScaling",
    "ManifestSource",
    "MetricName",
    "MetricSpec",
    "MetricTriggerSpec",
    "MetricsSection",
    "ModifiersSpec",
    "Moment",
    "PolicySpec",
    "PredictiveScaling",
    "ProportionalScaling",
    "QueueProportionalScaling",
    "RuleSpec",
    "ScaledObjectKeys",
    "ScalingPolicy",
    "ScheduleScaling",
    "SlaScaling",
    "StepScaling",
    "StepSpec",
    "TargetAt",
    "TargetTrackingScaling",
    "TimeZone",
    "TriggerSpec",
    "Workers",
]
