"""Targets that can never be reached, told before a run starts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dynamo_sim.autoscaling.kubernetes.hpa import HpaMetric, HpaPolicy, HpaSpec
from dynamo_sim.autoscaling.kubernetes.hpa.spec import Tolerance
from dynamo_sim.autoscaling.kubernetes.keda import KedaPolicy, MetricTrigger
from dynamo_sim.autoscaling.kubernetes.keda.formula_check import doubtful_formula
from dynamo_sim.autoscaling.kubernetes.kpa import KpaPolicy
from dynamo_sim.autoscaling.loop import loops_of
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policies.sla import SlaPolicy, SlaSettings
from dynamo_sim.autoscaling.policies.step_scaling import StepScalingPolicy
from dynamo_sim.autoscaling.policies.target_tracking import TargetTrackingPolicy


@dataclass(frozen=True)
class FleetFacts:
    """What is known of a fleet before it runs.

    Attributes:
        max_workers: largest fleet of the scenario; None for no bound.
        ceilings: the largest value one worker can ever show, by metric, where the engine sets one (such as ``running``:
            its largest batch).
        fastest_ttft_ms, fastest_itl_ms: what a request of one token gets from a worker it has to itself; 0 where that
            is not known.
    """

    max_workers: int | None = None
    ceilings: Mapping[str, float] = field(default_factory=dict)
    fastest_ttft_ms: float = 0.0
    fastest_itl_ms: float = 0.0

    def ceiling(self, query: MetricQuery, workers: int = 1) -> float | None:
        """The largest answer for one worker, or a sum over ``workers``, in the query's own unit; None for no bound."""
        if query.over not in ("last", "avg") and query.spec.ceiling is None:
            return None
        top = self.ceilings.get(query.metric, query.spec.ceiling)
        if top is None:
            return None
        return top * query.scale * (workers if query.reduce == "sum" and query.spec.per_worker else 1)


def unreachable_targets(policy: Any, facts: FleetFacts | None = None) -> list[str]:
    """One line for every target that can never cause what it is there for.

    Args:
        policy: any policy; of those that are not known nothing is said.
        facts: of the fleet.
    """
    return list(_lines(policy, facts or FleetFacts()))


def _lines(policy: Any, facts: FleetFacts) -> Iterator[str]:
    if isinstance(policy, KedaPolicy):
        yield from doubtful_formula(policy.spec, facts.ceiling)
        for trigger in policy.spec.triggers:
            if isinstance(trigger, MetricTrigger):
                yield from _activation(trigger, policy.spec.max_replicas, facts)
        spec = policy.hpa.spec
        if policy.spec.modifiers is None:
            queries = [t.query if isinstance(t, MetricTrigger) else None for t in policy.hpa.sources]
            yield from _hpa(spec, policy.hpa, facts, queries)
    elif isinstance(policy, HpaPolicy):
        yield from _hpa(policy.spec, policy, facts, [])
    elif isinstance(policy, TargetTrackingPolicy):
        top = facts.ceiling(policy.query)
        if top is not None and policy.kind == "average" and policy.target >= top:
            yield f"{policy.query} is never above {top:g}, so the target {policy.target:g} never adds a worker"
    elif isinstance(policy, StepScalingPolicy):
        for alarm in policy.alarms:
            top = facts.ceiling(alarm.query)
            if (
                top is not None
                and alarm.query.reduce != "sum"
                and alarm.direction == "up"
                and alarm.threshold > top
            ):
                yield f"{alarm.query} is never above {top:g}, so the threshold {alarm.threshold:g} is never breached"
    elif isinstance(policy, KpaPolicy):
        settings = policy.settings
        if settings.max_scale and settings.min_scale == settings.max_scale:
            yield f"min-scale and max-scale are both {settings.max_scale}: nothing ever scales"
    elif isinstance(policy, SlaPolicy):
        yield from _sla(policy.settings, facts)
    elif hasattr(policy, "floor_policy"):
        yield from _lines(policy.floor_policy, facts)
    elif hasattr(policy, "loops"):
        for loop in loops_of(policy, ""):
            yield from _lines(loop.policy, facts)


def _sla(settings: SlaSettings, facts: FleetFacts) -> Iterator[str]:
    bound = "" if facts.max_workers is not None else "; without max_workers it will ask for ever more"
    for name, target, fastest in (
        ("ttft_ms", settings.ttft_ms, facts.fastest_ttft_ms),
        ("itl_ms", settings.itl_ms, facts.fastest_itl_ms),
    ):
        if target < fastest:
            yield (
                f"{name} {target:g} is less than the {fastest:.4g} ms that a single token takes on an idle worker: no "
                f"fleet keeps it{bound}"
            )


def _activation(trigger: MetricTrigger, max_replicas: int, facts: FleetFacts) -> Iterator[str]:
    if trigger.activation < 0:
        yield (
            f"{trigger.name or trigger.query} is never below 0, so with the activation threshold "
            f"{trigger.activation:g} it is active for ever"
        )
    top = facts.ceiling(trigger.query, max_replicas)
    if top is not None and trigger.activation >= top:
        yield (
            f"{trigger.name or trigger.query} is never above {top:g}, so the activation threshold "
            f"{trigger.activation:g} never wakes the fleet"
        )


def _hpa(
    spec: HpaSpec, policy: HpaPolicy, facts: FleetFacts, queries: list[MetricQuery | None]
) -> Iterator[str]:
    largest = spec.max_replicas if facts.max_workers is None else min(spec.max_replicas, facts.max_workers)
    if facts.max_workers is not None and facts.max_workers < spec.max_replicas:
        yield f"maxReplicas is {spec.max_replicas}, but the scenario has at most {facts.max_workers} workers"
    if spec.min_replicas >= largest:
        yield f"the smallest and the largest fleet are both {largest} workers: nothing ever scales"
    tolerance = policy.tolerance
    if tolerance.down >= 1:
        yield f"a tolerance of {tolerance.down:g} for scaling down keeps every worker: no ratio is below it"
    for index, metric in enumerate(spec.metrics):
        query = metric.query
        if index < len(queries):
            known = queries[index]
            if known is None:
                continue
            query = known
        top = facts.ceiling(query)
        if top is not None:
            yield from _metric(metric, query, top, spec, largest, tolerance)


def _metric(
    metric: HpaMetric, query: MetricQuery, top: float, spec: HpaSpec, largest: int, tolerance: Tolerance
) -> Iterator[str]:
    """A metric whose largest value never asks for more than the smallest fleet."""
    label = metric.name or str(query)
    target = metric.target / 1000
    per_worker = metric.source in ("Pods", "Resource")
    if metric.target_type == "Utilization":
        target = metric.target / 100 * metric.request_milli / 1000
    if per_worker:
        unreachable, most = top / target <= 1 + tolerance.up, top
    elif metric.target_type == "AverageValue":
        # A sum of n workers is divided by n again, anything else shrinks as the fleet grows.
        summed = query.reduce == "sum" and query.spec.per_worker
        most = top if summed else top / max(1, spec.min_replicas)
        unreachable = most / target <= 1 + tolerance.up
        if not summed and not unreachable:
            unreachable = math.ceil(top / target) <= spec.min_replicas
    else:
        most = top * largest if query.reduce == "sum" and query.spec.per_worker else top
        unreachable = most / target <= 1 + tolerance.up
    if unreachable:
        unit = "%" if metric.target_type == "Utilization" else ""
        shown = metric.target if metric.target_type == "Utilization" else target
        of_fleet = "" if per_worker else " for the fleet" if metric.target_type == "Value" else " a worker"
        yield f"{label} is never above {most:g}{of_fleet}, so the target {shown:g}{unit} never adds a worker"
