"""Who decides how many workers there are, when, and from which numbers (`spec 10`).

A policy is an object with one method, `Policy.decide`: it gets the time, a `View` of the metrics and a `FleetView`
of the workers, and answers with a `Decision`. Policies keep their own memory and know no clock. The built-in ones are
made from their section of a scenario (`dynamo_sim.scenario.autoscaler`). `Guarded` checks every answer; `Loop`
and `PolicyRunner` say when a policy is evaluated; `MetricsPipeline` decides what can be seen; `load_manifest` turns the
manifest of a cluster into a policy.
"""

from __future__ import annotations

import warnings
from typing import Any

from dynamo_sim.autoscaling.budget import clamp_pair_to_budget, clamp_to_budget
from dynamo_sim.autoscaling.decision import Decision, DecisionRecord
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.fleet_view import FleetView, Sample, StaticView, View, WorkerPhase, WorkerView
from dynamo_sim.autoscaling.guard import Bounds, Guarded, PolicyError
from dynamo_sim.autoscaling.kubernetes.hpa import HpaMetric, HpaPolicy, HpaSpec
from dynamo_sim.autoscaling.kubernetes.keda import KedaPolicy, ScaledObjectSpec
from dynamo_sim.autoscaling.kubernetes.kpa import KpaPolicy
from dynamo_sim.autoscaling.kubernetes.manifests.load import Manifest, load_manifest
from dynamo_sim.autoscaling.kubernetes.manifests.options import ManifestOptions
from dynamo_sim.autoscaling.loop import FleetHandle, PolicyRunner
from dynamo_sim.autoscaling.metrics.pipeline import MetricsPipeline, scrape_offsets
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.metrics.sampler import Observations, Sampler
from dynamo_sim.autoscaling.policies.custom import as_policy, load_policy
from dynamo_sim.autoscaling.policies.dynamo_planner import (
    DynamoPlanner,
    DynamoPlannerPolicy,
    PlannerUnavailable,
    engine_capabilities,
)
from dynamo_sim.autoscaling.policies.fixed import FixedPolicy
from dynamo_sim.autoscaling.policies.predictive import PredictivePolicy
from dynamo_sim.autoscaling.policies.proportional import ProportionalPolicy
from dynamo_sim.autoscaling.policies.queue_proportional import QueueProportionalPolicy
from dynamo_sim.autoscaling.policies.schedule import SchedulePolicy
from dynamo_sim.autoscaling.policies.sla.capacity import EngineLimits
from dynamo_sim.autoscaling.policies.sla.policy import SlaPolicy
from dynamo_sim.autoscaling.policies.step_scaling import StepScalingPolicy
from dynamo_sim.autoscaling.policies.target_tracking import TargetTrackingPolicy
from dynamo_sim.autoscaling.policy import Loop, Policy, loops_of, reads_of, unreachable_targets
from dynamo_sim.autoscaling.wiring import pipelines_for
from dynamo_sim.fleet.fleet import TargetEffect
from dynamo_sim.records.readings import Reading, Threshold
from dynamo_sim.scenario.autoscaler.behavior import BehaviorSpec
from dynamo_sim.scenario.autoscaler.keda import FallbackSpec, ScaledObjectKeys
from dynamo_sim.scenario.autoscaler.kpa import KpaScaling
from dynamo_sim.scenario.autoscaler.manifest import HpaFlags
from dynamo_sim.scenario.autoscaler.metrics import MetricsSection
from dynamo_sim.scenario.autoscaler.sla import SlaScaling

_EARLIER_NAMES = {
    "Autoscaler": PolicyRunner,
    "HpaSettings": HpaFlags,
    "KpaSettings": KpaScaling,
    "MetricsSettings": MetricsSection,
    "SlaSettings": SlaScaling,
}


def __getattr__(name: str) -> Any:
    """A class by its earlier name, with a warning."""
    found = _EARLIER_NAMES.get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"{__name__}.{name} is now called {found.__name__}", DeprecationWarning, stacklevel=2)
    return found


__all__ = [
    "BehaviorSpec",
    "Bounds",
    "Decision",
    "DecisionRecord",
    "DynamoPlanner",
    "DynamoPlannerPolicy",
    "EngineLimits",
    "FallbackSpec",
    "FixedPolicy",
    "FleetFacts",
    "FleetHandle",
    "FleetView",
    "Guarded",
    "HpaFlags",
    "HpaMetric",
    "HpaPolicy",
    "HpaSpec",
    "KedaPolicy",
    "KpaPolicy",
    "KpaScaling",
    "Loop",
    "Manifest",
    "ManifestOptions",
    "MetricQuery",
    "MetricsPipeline",
    "MetricsSection",
    "Observations",
    "PlannerUnavailable",
    "Policy",
    "PolicyError",
    "PolicyRunner",
    "PredictivePolicy",
    "ProportionalPolicy",
    "QueueProportionalPolicy",
    "Reading",
    "Sample",
    "Sampler",
    "ScaledObjectKeys",
    "ScaledObjectSpec",
    "SchedulePolicy",
    "SlaPolicy",
    "SlaScaling",
    "StaticView",
    "StepScalingPolicy",
    "TargetEffect",
    "TargetTrackingPolicy",
    "Threshold",
    "View",
    "WorkerPhase",
    "WorkerView",
    "as_policy",
    "clamp_pair_to_budget",
    "clamp_to_budget",
    "engine_capabilities",
    "load_manifest",
    "load_policy",
    "loops_of",
    "pipelines_for",
    "reads_of",
    "scrape_offsets",
    "unreachable_targets",
]
