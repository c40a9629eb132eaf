"""Targets of an HPA that can never be reached, reported before a run starts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.kubernetes.hpa.spec import HpaMetric, HpaSpec, Tolerance
from dynamo_sim.autoscaling.metrics.query import MetricQuery


def hpa_caveats(
    spec: HpaSpec, tolerance: Tolerance, queries: Sequence[MetricQuery | None], facts: FleetFacts
) -> Iterator[str]:
    """One line for every target or limit of an HPA that can never cause what it is there for.

    Args:
        spec: of the HPA.
        tolerance: that holds for it.
        queries: what each metric is read by; None for one that nothing is known of.
        facts: of the fleet.
    """
    largest = spec.max_replicas if facts.max_workers is None else min(spec.max_replicas, facts.max_workers)
    if facts.max_workers is not None and facts.max_workers < spec.max_replicas:
        yield f"maxReplicas is {spec.max_replicas}, but the scenario has at most {facts.max_workers} workers"
    if spec.min_replicas >= largest:
        yield f"the smallest and the largest fleet are both {largest} workers: nothing ever scales"
    if tolerance.down >= 1:
        yield f"a tolerance of {tolerance.down:g} for scaling down keeps every worker: no ratio is below it"
    for metric, query in zip(spec.metrics, queries, strict=True):
        top = None if query is None else facts.ceiling(query)
        if query is not None and top is not None:
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
