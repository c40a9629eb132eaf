"""Manifests of a cluster run as they are, or say in one line why not (`spec 10, 2.1, 3.1 and 4.1`)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dynamo_sim.autoscaling import (
    HpaFlags,
    HpaPolicy,
    HpaSpec,
    KedaPolicy,
    KpaPolicy,
    KpaScaling,
    ManifestOptions,
    MetricQuery,
    ScaledObjectSpec,
    load_manifest,
)
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.kubernetes.kpa.targets import capacity
from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.autoscaler.behavior import DEFAULT_DOWN, DEFAULT_UP, RuleSpec

BUSY = ManifestOptions(resource_map={"cpu": MetricQuery("busy")})


def hpa(version: str = "v2", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "vllm"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "vllm"}, "maxReplicas": 8, **spec},
    }


def pods(name: str = "vllm_num_requests_waiting", value: Any = "5") -> dict[str, Any]:
    return {
        "type": "Pods",
        "pods": {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": value}},
    }


def scaled_object(*triggers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "so"},
        "spec": {"scaleTargetRef": {"name": "vllm"}, "triggers": list(triggers) or [prometheus()], **spec},
    }


def prometheus(query: str = "sum(vllm:num_requests_waiting)", **more: Any) -> dict[str, Any]:
    metadata = {"serverAddress": "http://prometheus:9090", "query": query, "threshold": "10", **more}
    return {"type": "prometheus", "metadata": metadata}


def knative(annotations: dict[str, str], limit: int | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"image": "vllm"}]}
    if limit is not None:
        spec["containerConcurrency"] = limit
    named = {f"autoscaling.knative.dev/{key}": value for key, value in annotations.items()}
    return {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "kn"},
        "spec": {"template": {"metadata": {"annotations": named}, "spec": spec}},
    }


def problems(data: Any, options: ManifestOptions | None = None) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_manifest(data, options)
    return list(caught.value.problems)


# ---------------------------------------------------------------- files and documents


def test_a_file_with_a_deployment_and_an_hpa(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vllm"}}
    path.write_text(yaml.safe_dump_all([deployment, None, hpa(metrics=[pods()])]), encoding="utf-8")
    manifest = load_manifest(path)
    assert (manifest.kind, manifest.name, manifest.bounds) == ("hpa", "vllm", Bounds(1, 8))
    assert manifest.warnings == (
        f"{path}:1, document 1 (Deployment vllm): a Deployment is no autoscaler and is not read",
    )
    assert load_manifest(str(path)) == manifest
    assert isinstance(manifest.policy(), HpaPolicy)
    assert manifest.policy() is not manifest.policy()


def test_several_autoscalers_are_reported_apart_by_name() -> None:
    other = hpa(metrics=[pods()])
    other["metadata"] = {"name": "prefill"}
    listed = {"kind": "List", "apiVersion": "v1", "items": [hpa(metrics=[pods()]), other]}
    assert load_manifest(listed, name="prefill").name == "prefill"
    assert "there are 2 autoscalers in it" in problems(listed)[0]
    with pytest.raises(ScenarioError, match="no autoscaler named 'x'"):
        load_manifest(listed, name="x")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kind: Service\napiVersion: v1\n", "there is no autoscaler in it"),
        ("a: [1\nb: 2\n", "is no YAML"),
        ("spec: {maxReplicas: {{ .Values.max }}}\nkind: x\n", "is a template"),
        ("hello\nworld\n", "must be a mapping"),
        ("metadata: {name: x}\nspec: {}\n", "kind: is missing"),
        ("kind: ScaledJob\nmetadata: {name: x}\n", "ScaledJob starts jobs"),
        ("/nowhere/at/all.yaml", "cannot be read"),
    ],
)
def test_what_is_no_manifest(text: str, why: str) -> None:
    found = problems(text)
    assert len(found) == 1 and why in found[0]


@pytest.mark.parametrize(
    ("version", "kind", "why"),
    [
        ("autoscaling.aibrix.ai/v1alpha1", "PodAutoscaler", "a PodAutoscaler of AIBrix is not read"),
        (
            "autoscaling.example.org/v1",
            "PodAutoscaler",
            "autoscaling.internal.knative.dev, autoscaling.aibrix.ai; got",
        ),
        (None, "PodAutoscaler", "apiVersion: of a PodAutoscaler must be one of .*; it is missing"),
        (5, "PodAutoscaler", "apiVersion: must be a text, got 5"),
        ("autoscaling.knative.dev.evil.org/v1", "PodAutoscaler", "must be one of"),
        ("example.org/v1", "HorizontalPodAutoscaler", "must be one of autoscaling; got 'example.org/v1'"),
        ("example.org/v1", "ScaledObject", "must be keda.sh/v1alpha1"),
        ("serving.kserve.io/v1beta1", "InferenceService", "an InferenceService is not read: KServe makes"),
        ("ray.io/v1", "RayService", "a RayService is not read: Ray Serve's own autoscaler"),
        ("llmd.ai/v1alpha1", "VariantAutoscaling", "llm-d's saturation analysis"),
        ("nvidia.com/v1alpha1", "DynamoGraphDeployment", "policy: {kind: dynamo_planner, config: ...}"),
        ("example.org/v1", "InferenceService", "there is no autoscaler in it"),
    ],
)
def test_an_autoscaler_is_known_by_its_api_version_and_kind(version: Any, kind: str, why: str) -> None:
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {"maxReplicas": 8}}
    (line,) = problems(document)
    assert re.search(why.replace("{", r"\{"), line)


def test_a_service_of_cloud_run_is_not_read_as_knative_s() -> None:
    for key, place in (
        ("run.googleapis.com/cpu-throttling", "template"),
        ("run.googleapis.com/launch-stage", "top"),
    ):
        service = knative({"min-scale": "1"})
        holder = service if place == "top" else service["spec"]["template"]
        holder.setdefault("metadata", {}).setdefault("annotations", {})[key] = "x"
        (line,) = problems(service)
        assert "one of Cloud Run, whose own autoscaler is not modelled" in line


def test_another_autoscaler_beside_the_one_that_is_read_is_reported() -> None:
    other = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": {"name": "x"}}
    (warning,) = load_manifest([other, hpa(metrics=[pods()])]).warnings
    assert "an InferenceService is not read" in warning


# ---------------------------------------------------------------- HPA


def test_behavior_keeps_defaults_for_what_is_not_given() -> None:
    rules = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    spec = load_manifest(hpa(metrics=[pods()], behavior={"scaleDown": rules})).spec
    assert isinstance(spec, HpaSpec) and spec.behavior is not None
    assert spec.behavior.up == DEFAULT_UP
    assert spec.behavior.down.rules == (RuleSpec(type="Pods", value=1, period_s=60),)
    assert spec.behavior.down.stabilization_window_s is None
    empty = load_manifest(hpa(metrics=[pods()], behavior={})).spec
    assert isinstance(empty, HpaSpec) and empty.behavior is not None and empty.behavior.down == DEFAULT_DOWN
    none = load_manifest(hpa(metrics=[pods()])).spec
    assert isinstance(none, HpaSpec) and none.behavior is None


def metric_of(data: dict[str, Any], options: ManifestOptions | None = None) -> tuple[Any, ...]:
    spec = load_manifest(data, options).spec
    assert isinstance(spec, HpaSpec)
    (metric,) = spec.metrics
    return metric.source, metric.target_type, metric.target, metric.query


@pytest.mark.parametrize(
    ("version", "entry", "metric"),
    [
        ("v2", pods(value="1500m"), ("Pods", "AverageValue", 1500, MetricQuery("waiting"))),
        ("v2", pods("kv_usage", "800m"), ("Pods", "AverageValue", 800, MetricQuery("kv_usage"))),
        (
            "v2beta2",
            {
                "type": "External",
                "external": {
                    "metric": {"name": "dynamo_frontend_queued_requests"},
                    "target": {"type": "Value", "value": "2k"},
                },
            },
            ("External", "Value", 2_000_000, MetricQuery("waiting", reduce="sum")),
        ),
        (
            "v2",
            {
                "type": "Object",
                "object": {
                    "describedObject": {"kind": "Service", "name": "x"},
                    "metric": {"name": "vllm:num_requests_running"},
                    "target": {"type": "AverageValue", "averageValue": 3},
                },
            },
            ("Object", "AverageValue", 3000, MetricQuery("running", reduce="sum")),
        ),
        (
            "v2",
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
            },
            ("Resource", "Utilization", 60, MetricQuery("busy")),
        ),
        (
            "v2beta1",
            {"type": "Pods", "pods": {"metricName": "vllm_num_requests_waiting", "targetAverageValue": 5}},
            ("Pods", "AverageValue", 5000, MetricQuery("waiting")),
        ),
        (
            "v2beta1",
            {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 60}},
            ("Resource", "Utilization", 60, MetricQuery("busy")),
        ),
        (
            "v2beta1",
            {"type": "External", "external": {"metricName": "router_queue", "targetValue": "7"}},
            ("External", "Value", 7000, MetricQuery("router_queue", reduce="sum")),
        ),
    ],
)
def test_metrics_of_every_version(version: str, entry: dict[str, Any], metric: tuple[Any, ...]) -> None:
    assert metric_of(hpa(version, metrics=[entry]), BUSY) == metric


def test_v1_is_cpu_and_what_its_annotations_say() -> None:
    assert metric_of(hpa("v1", targetCPUUtilizationPercentage=50), BUSY)[2] == 50
    assert metric_of(hpa("v1"), BUSY)[2] == 80
    old = hpa("v1")
    entry = {"type": "Pods", "pods": {"metricName": "vllm_num_requests_waiting", "targetAverageValue": "5"}}
    behavior = {"ScaleDown": {"SelectPolicy": "Disabled"}}
    old["metadata"]["annotations"] = {
        "autoscaling.alpha.kubernetes.io/metrics": json.dumps([entry]),
        "autoscaling.alpha.kubernetes.io/behavior": json.dumps(behavior),
    }
    spec = load_manifest(old).spec
    assert isinstance(spec, HpaSpec) and spec.behavior is not None
    assert spec.metrics[0].query == MetricQuery("waiting")
    assert spec.behavior.down.select == "Disabled"


def test_a_name_of_ones_own_is_said_beside_the_manifest() -> None:
    assert "metric_map: {my_queue: {metric: waiting" in problems(hpa(metrics=[pods("my_queue")]))[0]
    options = ManifestOptions(metric_map={"my_queue": MetricQuery("waiting", "avg", window_s=60)})
    assert metric_of(hpa(metrics=[pods("my_queue")]), options)[3].over == "avg"


def test_zero_needs_the_gate_and_a_total() -> None:
    gate = ManifestOptions(hpa=HpaFlags(scale_to_zero=True))
    external = {
        "type": "External",
        "external": {"metric": {"name": "router_queue"}, "target": {"type": "Value", "value": "5"}},
    }
    assert "needs scale_to_zero" in problems(hpa(minReplicas=0, metrics=[external]))[0]
    assert "at least one Object or External" in problems(hpa(minReplicas=0, metrics=[pods()]), gate)[0]
    assert load_manifest(hpa(minReplicas=0, metrics=[external]), gate).bounds == Bounds(0, 8)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"maxReplica": 3}, "spec.maxReplica: unknown key; did you mean 'maxReplicas'?"),
        ({"minReplicas": "2"}, "spec.minReplicas: must be a number, got '2'"),
        ({"minReplicas": 9}, "spec.maxReplicas: is below minReplicas (9)"),
        ({"metrics": {}}, "spec.metrics: must be a list"),
        ({"metrics": [pods(value="5x")]}, "averageValue: not a quantity: '5x'"),
        ({"metrics": [pods(value="0")]}, "averageValue: must be above 0"),
        ({"metrics": [{"type": "Pod"}]}, "type: must be one of"),
        ({"metrics": [pods("vllm_time_to_first_token_seconds")]}, "is a histogram; say which percentile"),
        ({"metrics": [pods("dynamo_frontend_queued_requests")]}, "one series for the whole fleet"),
        ({"metrics": [pods("router_queue")]}, "one value for the whole fleet"),
        ({"behavior": {"scaleUp": {"policies": []}}}, "must have at least one entry"),
        ({"behavior": {"scaleUp": {"selectPolicy": "Most"}}}, "must be one of Max, Min, Disabled"),
        (
            {"behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1}]}}},
            "periodSeconds: is missing",
        ),
        ({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 7200}}}, "must be at most 3600"),
        (
            {
                "metrics": [
                    {"type": "Resource", "resource": {"name": "memory", "target": {"averageValue": "1Gi"}}}
                ]
            },
            "no model of the resource 'memory'",
        ),
    ],
)
def test_every_mistake_is_one_line_with_its_place(spec: dict[str, Any], why: str) -> None:
    found = problems(hpa(**{"metrics": [pods()], **spec}))
    assert len(found) == 1
    assert why in found[0]
    assert found[0].startswith("manifest (HorizontalPodAutoscaler vllm): spec")


def test_selectors_and_containers_are_warned_about() -> None:
    entry = pods()
    entry["pods"]["metric"]["selector"] = {"matchLabels": {"a": "b"}}
    assert "selector: label selectors are ignored" in load_manifest(hpa(metrics=[entry])).warnings[0]
    of_container = {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "app", "target": {"averageUtilization": 60}},
    }
    manifest = load_manifest(hpa(metrics=[of_container]), BUSY)
    assert "the whole worker counts" in manifest.warnings[0]


# ---------------------------------------------------------------- KEDA


def test_a_scaled_object_and_its_defaults() -> None:
    manifest = load_manifest(scaled_object())
    spec = manifest.spec
    assert isinstance(spec, ScaledObjectSpec) and isinstance(manifest.policy(), KedaPolicy)
    assert (spec.keys.min_replicas, spec.keys.max_replicas, spec.keys.polling_interval_s) == (0, 100, 30)
    assert (
        spec.keys.cooldown_s,
        spec.keys.initial_cooldown_s,
        spec.keys.idle_replicas,
        spec.keys.behavior,
    ) == (
        300,
        0,
        None,
        None,
    )
    assert manifest.warnings == ()


def test_a_trigger_may_say_metric_reduce_and_window_itself() -> None:
    entry = prometheus(metric="kv_usage", reduce="max", over="avg", window_s=60)
    manifest = load_manifest(scaled_object(entry))
    assert manifest.policy().reads == (MetricQuery("kv_usage", "avg", "max", 60),)  # type: ignore[union-attr]
    assert "the query is not read" in manifest.warnings[0]
    mapped = ManifestOptions(metric_map={"my_query": MetricQuery("running", reduce="sum")})
    assert load_manifest(scaled_object(prometheus("my_query")), mapped).policy().reads == (  # type: ignore[union-attr]
        MetricQuery("running", reduce="sum"),
    )


def test_advanced_settings_and_fallback() -> None:
    entry = {**prometheus(), "name": "queue", "metricType": "Value", "useCachedMetrics": True}
    spec = load_manifest(
        scaled_object(
            entry,
            fallback={"failureThreshold": 3, "replicas": 6, "behavior": "currentReplicasIfHigher"},
            advanced={
                "restoreToOriginalReplicaCount": True,
                "horizontalPodAutoscalerConfig": {
                    "behavior": {"scaleDown": {"stabilizationWindowSeconds": 30}}
                },
                "scalingModifiers": {"formula": "queue * 2", "target": "3", "activationTarget": "1"},
            },
        )
    ).spec
    assert isinstance(spec, ScaledObjectSpec)
    assert spec.keys.behavior is not None and spec.keys.behavior.down.stabilization_window_s == 30
    assert spec.modifiers is not None and (spec.modifiers.target_milli, spec.modifiers.activation) == (
        3000,
        1.0,
    )
    assert spec.keys.fallback is not None and spec.keys.fallback.behavior == "currentReplicasIfHigher"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"idleReplicaCount": 2, "minReplicaCount": 2}, "must be below minReplicaCount"),
        ({"minReplicaCount": 5, "maxReplicaCount": 4}, "is below minReplicaCount"),
        ({"triggers": []}, "must have at least one entry"),
        ({"triggers": [{"type": "rabbitmq", "metadata": {}}]}, "no counterpart of the trigger 'rabbitmq'"),
        ({"triggers": [prometheus("topk(1, vllm:num_requests_waiting)")]}, "topk() is not understood"),
        ({"triggers": [{**prometheus(), "metricType": "Utilization"}]}, "only for cpu and memory"),
        ({"advanced": {"scalingModifiers": {"formula": "queue", "target": "1"}}}, "no trigger named 'queue'"),
        (
            {"fallback": {"failureThreshold": 3, "replicas": 2, "behavior": "scalingModifiers"}},
            "behavior: scalingModifiers needs advanced.scalingModifiers.formula",
        ),
        ({"fallback": {"replicas": 3}}, "failureThreshold: is missing"),
        ({"triggers": [{"type": "cpu", "metadata": {"value": "50"}}]}, "no model of the resource 'cpu'"),
    ],
)
def test_mistakes_in_a_scaled_object(spec: dict[str, Any], why: str) -> None:
    found = problems(scaled_object(**spec))
    assert len(found) == 1 and why in found[0]


@pytest.mark.parametrize(
    ("trigger", "warned"),
    [
        (prometheus(treshold="1"), "treshold: unknown key; KEDA ignores it, too (did you mean 'threshold'?)"),
        (prometheus(metricType="Value"), "metricType: unknown key; KEDA ignores it, too"),
        (
            prometheus("vllm:num_requests_waiting"),
            "with several workers the trigger fails; wrap it in sum(...)",
        ),
    ],
)
def test_what_keda_takes_is_taken_with_a_warning(trigger: dict[str, Any], warned: str) -> None:
    (warning,) = load_manifest(scaled_object(trigger)).warnings
    assert warned in warning


def test_the_account_of_a_prometheus_is_nothing_to_warn_about() -> None:
    assert load_manifest(scaled_object(prometheus(identityOwner="operator"))).warnings == ()


def test_cpu_alone_cannot_scale_from_zero() -> None:
    cpu = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50"}}
    assert "must be at least 1" in problems(scaled_object(cpu), BUSY)[0]
    policy = load_manifest(scaled_object(cpu, minReplicaCount=1), BUSY).policy()
    assert policy.reads == (MetricQuery("busy"),)  # type: ignore[union-attr]


def test_a_cooldown_without_effect_is_reported() -> None:
    manifest = load_manifest(scaled_object(minReplicaCount=1, cooldownPeriod=60))
    assert "has no effect while minReplicaCount is 1" in manifest.warnings[0]


# ---------------------------------------------------------------- Knative


def test_annotations_over_the_cluster_s_configuration() -> None:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "config-autoscaler"},
        "data": {
            "_example": "...",
            "container-concurrency-target-percentage": "0.9",
            "stable-window": "2m",
            "enable-scale-to-zero": "false",
            "activator-capacity": "100",
        },
    }
    annotations = {
        "target": "10",
        "window": "90s",
        "min-scale": "1",
        "maxScale": "6",
        "target-utilization-percentage": "80",
    }
    manifest = load_manifest([config, knative(annotations, 8)])
    settings = manifest.spec
    assert isinstance(settings, KpaScaling) and isinstance(manifest.policy(), KpaPolicy)
    assert (settings.window_s, settings.utilization, settings.enable_scale_to_zero) == (90, 0.8, False)
    assert (settings.min_scale, settings.max_scale, capacity(settings)) == (1, 6, 8)
    assert manifest.bounds == Bounds(1, 6)
    assert any("activator-capacity: has no effect here" in line for line in manifest.warnings)
    assert any("containerConcurrency: caps the target" in line for line in manifest.warnings)


def test_a_pod_autoscaler_carries_its_own_annotations() -> None:
    data = {
        "apiVersion": "autoscaling.internal.knative.dev/v1alpha1",
        "kind": "PodAutoscaler",
        "metadata": {"name": "pa", "annotations": {"autoscaling.knative.dev/metric": "rps"}},
        "spec": {"containerConcurrency": 0},
    }
    settings = load_manifest(data).spec
    assert isinstance(settings, KpaScaling) and settings.metric == "rps"


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        ({"class": "hpa.autoscaling.knative.dev"}, "only the class kpa"),
        ({"metric": "cpu"}, "must be one of concurrency, rps"),
        ({"window": "sixty"}, "must be a duration"),
        ({"target": "ten"}, "must be a number"),
        ({"min-scale": "-1"}, "must be at least 0"),
        ({"min-scale": "1.5"}, "must be a whole number"),
        ({"target-utilization-percentage": "170"}, "at most 100, got 170"),
    ],
)
def test_mistakes_in_annotations(annotations: dict[str, str], why: str) -> None:
    found = problems(knative(annotations))
    assert len(found) == 1 and why in found[0]


def test_annotations_in_the_wrong_place_or_unknown_are_reported() -> None:
    data = knative({"progress": "1"})
    data["metadata"]["annotations"] = {"autoscaling.knative.dev/min-scale": "2"}
    manifest = load_manifest(data)
    assert isinstance(manifest.spec, KpaScaling) and manifest.spec.min_scale == 0
    assert any("belongs under spec.template.metadata" in line for line in manifest.warnings)
    assert any("progress: has no effect here" in line for line in manifest.warnings)
