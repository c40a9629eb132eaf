"""Targets that can never be reached are reported before the run."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.autoscaling import (
    FixedPolicy,
    FleetFacts,
    HpaFlags,
    HpaMetric,
    HpaPolicy,
    HpaSpec,
    KpaPolicy,
    KpaScaling,
    MetricQuery,
    PredictivePolicy,
    SlaPolicy,
    StepScalingPolicy,
    TargetTrackingPolicy,
    load_manifest,
    unreachable_targets,
)
from dynamo_sim.scenario.autoscaler.fixed import FixedScaling
from dynamo_sim.scenario.autoscaler.predictive import PredictiveScaling
from dynamo_sim.scenario.autoscaler.sla import SlaScaling
from dynamo_sim.scenario.autoscaler.step_scaling import AlarmSpec, StepScaling, StepSpec
from dynamo_sim.scenario.autoscaler.target_tracking import TargetTrackingScaling

KV = MetricQuery("kv_usage")
FACTS = FleetFacts(max_workers=8, ceilings={"running": 64.0})


def hpa(source: str, kind: str, target: float, query: MetricQuery = KV, **more: Any) -> HpaPolicy:
    number = int(target) if kind == "Utilization" else int(target * 1000)
    metric = HpaMetric(source, kind, number, query, "it")
    return HpaPolicy(HpaSpec(**{"max_replicas": 8, **more}, metrics=(metric,)))


def tracking(target: float) -> TargetTrackingPolicy:
    return TargetTrackingPolicy(TargetTrackingScaling(metric="kv_usage", target=target))


def alarm(threshold: float) -> StepScalingPolicy:
    steps = (StepSpec(lower=0, adjustment=1),)
    spec = AlarmSpec(metric="kv_usage", threshold=threshold, direction="up", steps=steps)
    return StepScalingPolicy(StepScaling(alarms=(spec,)))


PREDICTIVE = PredictiveScaling(
    metric="kv_usage", per_worker=1, bin_s=10, method="linear", floor_policy=tracking(2.0).spec
)


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (hpa("Pods", "AverageValue", 90), "it is never above 1, so the target 90 never adds a worker"),
        (
            hpa("Pods", "AverageValue", 0.95),
            "the target 0.95 never adds",
        ),  # within the tolerance even when full
        (hpa("Pods", "AverageValue", 0.8), None),
        (hpa("Pods", "AverageValue", 80, MetricQuery("kv_usage", scale=100.0)), None),
        (hpa("Resource", "Utilization", 95, MetricQuery("busy")), "the target 95% never adds"),
        (hpa("Pods", "AverageValue", 70, MetricQuery("running")), "never above 64"),
        (hpa("Pods", "AverageValue", 70, MetricQuery("in_flight")), None),
        (hpa("External", "Value", 8, MetricQuery("kv_usage", reduce="sum")), "never above 8 for the fleet"),
        (hpa("External", "Value", 4, MetricQuery("kv_usage", reduce="sum")), None),
        (hpa("External", "AverageValue", 0.5, MetricQuery("kv_usage", reduce="max")), None),
        (
            hpa("External", "AverageValue", 0.5, MetricQuery("kv_usage", reduce="max"), min_replicas=2),
            "never adds",
        ),
        (hpa("Pods", "AverageValue", 5000, MetricQuery("ttft", "p95")), None),
        (tracking(1.0), "the target 1 never adds a worker"),
        (tracking(0.9), None),
        (
            alarm(80),
            "the threshold 80 is never breached",
        ),
        (alarm(0.8), None),
        (KpaPolicy(KpaScaling(min_scale=3, max_scale=3)), "both 3"),
        (
            PredictivePolicy(PREDICTIVE, tracking(2.0)),
            "the target 2 never adds",
        ),
        (FixedPolicy(FixedScaling(count=3)), None),
    ],
)
def test_a_target_out_of_reach(policy: Any, why: str | None) -> None:
    found = unreachable_targets(policy, FACTS)
    if why is None:
        assert found == []
    else:
        assert len(found) == 1 and why in found[0]


def test_bounds_and_tolerances_that_forbid_everything() -> None:
    assert "both 8 workers" in unreachable_targets(hpa("Pods", "AverageValue", 0.5, min_replicas=8))[0]
    above = unreachable_targets(hpa("Pods", "AverageValue", 0.5), FleetFacts(max_workers=4))
    assert "at most 4 workers" in above[0]
    policy = HpaPolicy(hpa("Pods", "AverageValue", 0.4).spec, HpaFlags(tolerance=1.0))
    assert any("keeps every worker" in line for line in unreachable_targets(policy))


def test_an_activation_threshold_beyond_the_metric() -> None:
    manifest = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "so"},
        "spec": {
            "triggers": [
                {
                    "type": "prometheus",
                    "metadata": {
                        "query": "avg(vllm:kv_cache_usage_perc)",
                        "threshold": "0.6",
                        "activationThreshold": "20",
                    },
                }
            ]
        },
    }
    found = unreachable_targets(load_manifest(manifest).policy())
    assert any("never wakes the fleet" in line for line in found)


def test_a_latency_below_that_of_one_token_on_an_idle_worker_is_told() -> None:
    policy = SlaPolicy(SlaScaling(ttft_ms=20.0, itl_ms=5.0))
    facts = FleetFacts(fastest_ms=lambda: (22.5, 6.0))
    assert unreachable_targets(policy, facts) == [
        "ttft_ms 20 is less than the 22.5 ms that a single token takes on an idle worker: no fleet keeps it; without "
        "max_workers it will ask for ever more",
        "itl_ms 5 is less than the 6 ms that a single token takes on an idle worker: no fleet keeps it; without "
        "max_workers it will ask for ever more",
    ]
    assert unreachable_targets(policy) == []
