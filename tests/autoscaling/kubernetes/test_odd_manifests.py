"""Odd manifests: each is read or refused in lines that say where and why; none ends in a traceback or in silence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dynamo_sim.autoscaling import MetricQuery
from dynamo_sim.autoscaling.kubernetes.hpa.quantity import parse_quantity
from dynamo_sim.autoscaling.kubernetes.manifests.load import load_manifest
from dynamo_sim.autoscaling.kubernetes.manifests.options import ManifestOptions
from dynamo_sim.errors import ScenarioError

HPA = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: x}
spec:
  maxReplicas: 4
  metrics:
    - type: Pods
      pods: {metric: {name: vllm:num_requests_waiting}, target: {type: AverageValue, averageValue: 5}}
"""


def refused(source: Any) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_manifest(source)
    assert all("\n" not in line and len(line) < 300 for line in caught.value.problems)
    return list(caught.value.problems)


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("quantity", ["1e400", "1e9999999999999999999", "16Ei", "-1e19", 1e308, 10**400])
def test_a_quantity_kubernetes_cannot_hold_is_too_large(quantity: Any) -> None:
    with pytest.raises(ValueError, match=r"^too large a quantity: .*; the largest is 2\^63 - 1$"):
        parse_quantity(quantity)


def test_the_smallest_quantities_are_rounded_up_where_they_count() -> None:
    text = HPA.replace("averageValue: 5", "averageValue: 1e-400")
    assert load_manifest(text).spec.metrics[0].target == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("averageValue: 5", 'averageValue: "1e400"', "averageValue: too large a quantity: '1e400'"),
        ("maxReplicas: 4", "maxReplicas: 1.0e+300", "spec.maxReplicas: too large a number: 1e+300"),
        ("maxReplicas: 4", "maxReplicas: 2147483648", "spec.maxReplicas: must be at most 2147483647"),
        ("maxReplicas: 4", f"maxReplicas: {'1' * 5000}", "manifest:5: is no YAML: no number"),
        ("maxReplicas: 4", "maxReplicas: 1:30", "spec.maxReplicas: must be a number, got '1:30'"),
        ("maxReplicas: 4", "maxReplicas: .nan", "spec.maxReplicas: must be a number, got nan"),
    ],
)
def test_numbers_beyond_all_bounds_are_refused_by_their_key(old: str, new: str, why: str) -> None:
    (found,) = refused(HPA.replace(old, new))
    assert why in found


# ---------------------------------------------------------------- YAML


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            HPA + "  maxReplicas: 9\n",
            "manifest:9: is no YAML: duplicate key 'maxReplicas'; the first is on line 5",
        ),
        (HPA + "foo: \x00\n", "manifest:9: is no text"),
        (HPA + "foo: " + "[" * 3000, "nested too deeply"),
        (
            HPA + "foo: !!python/object:os.system {}\n",
            "manifest:9: is no YAML: could not determine a constructor",
        ),
        ("&l\nkind: List\nitems: [*l]\n", "there is no autoscaler in it"),
        ("kind: List\nitems: 5\n", "the items of a List must be a list, got 5"),
        ("---\n---\n", "there is no autoscaler in it"),
        (
            "kind: HorizontalPodAutoscaler\nspec: &s {maxReplicas: 3, metrics: [*s]}\n",
            "spec.metrics[0].type: is missing",
        ),
    ],
)
def test_text_that_is_no_manifest_is_refused_in_one_line(text: str, why: str) -> None:
    (found,) = refused(text)
    assert why in found


def test_problems_and_warnings_tell_the_line_of_the_key(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(f"kind: Secret\n---\n{HPA}  minReplicas: 9\n  colour: blue\n".replace(": 5", ": -5"))
    where = "document 2 (HorizontalPodAutoscaler x): spec"
    assert refused(path) == [
        f"{path}:10, {where}.metrics[0].pods.target.averageValue: must be above 0, got -5",
        f"{path}:12, {where}.colour: unknown key",
        f"{path}:7, {where}.maxReplicas: is below minReplicas (9)",
    ]
    path.write_text(f"kind: Secret\n---\n{HPA}")
    assert load_manifest(path, called="my.yaml").warnings == (
        "my.yaml:1, document 1 (Secret): a Secret is no autoscaler and is not read",
    )


def test_a_missing_key_is_reported_at_its_section_and_a_bad_item_at_its_list() -> None:
    where = "(HorizontalPodAutoscaler x): spec.metrics"
    for old, new, line in (
        ("averageValue: 5", "colour: 5", f"manifest:8 {where}[0].pods.target.averageValue: is missing"),
        (
            "    - type: Pods\n",
            "    - 5\n    - type: Pods\n",
            f"manifest:6 {where}[0]: must be a mapping, got 5",
        ),
    ):
        assert line in refused(HPA.replace(old, new))


@pytest.mark.parametrize("what", ["it is a device", "it is a named pipe", "it has more than 4,194,304 bytes"])
def test_what_never_ends_or_is_no_manifest_by_its_size_is_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if what == "it is a device":
        path = Path("/dev/zero")
    elif what == "it is a named pipe":
        os.mkfifo(path)
    else:
        with path.open("wb") as file:
            file.truncate(5_000_000_000)  # takes no room
    (line,) = refused(path)
    assert line.startswith(f"{path}: cannot be read: {what}")


def test_an_endless_alias_is_shown_in_short() -> None:
    levels = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9) if i else 'x'}]\n" for i in range(12))
    found = refused(f"{levels}---\nkind: HorizontalPodAutoscaler\nspec: {{maxReplicas: 2, metrics: []}}\n")
    assert len(found) == 1
    bomb = levels + "kind: HorizontalPodAutoscaler\nspec: {maxReplicas: *l11, metrics: *l11}\n"
    assert any("spec.maxReplicas: must be a number, got [[" in line for line in refused(bomb))


def test_dates_are_texts_and_merge_keys_are_followed() -> None:
    text = HPA.replace("{name: x}", "{name: x, creationTimestamp: 2024-13-45}").replace(
        "maxReplicas: 4", "<<: {maxReplicas: 7, minReplicas: 2}\n  minReplicas: 3"
    )
    assert load_manifest(text).bounds.max_workers == 7
    assert load_manifest(text).bounds.min_workers == 3


def test_what_is_no_mapping_is_reported_once() -> None:
    text = HPA.replace("    - type: Pods\n", "    - 5\n    - type: Pods\n")
    assert refused(text) == [
        "manifest:6 (HorizontalPodAutoscaler x): spec.metrics[0]: must be a mapping, got 5",
    ]


# ---------------------------------------------------------------- Knative


def knative(**annotations: Any) -> dict[str, Any]:
    named = {"autoscaling.knative.dev/" + key.replace("_", "-"): value for key, value in annotations.items()}
    return {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "k"},
        "spec": {"template": {"metadata": {"annotations": named}}},
    }


def test_all_annotations_out_of_range_are_reported_with_their_keys() -> None:
    found = refused(
        knative(
            target="0",
            window="0.1s",
            panic_window_percentage="0.5",
            activation_scale="0",
            metric="cpu",
            target_burst_capacity="-2",
            initial_scale="x",
        )
    )
    place = "manifest (Service k): spec.template.metadata.annotations.autoscaling.knative.dev/"
    assert sorted(line.removeprefix(place) for line in found) == [
        "activation-scale: must be at least 1, got '0'",
        "initial-scale: must be a number, got 'x'",
        "metric: must be one of concurrency, rps, got 'cpu'",
        "panic-window-percentage: must be at least 1, got '0.5'",
        "target-burst-capacity: must be at least -1, got '-2'",
        "target: must be greater than 0, got '0'",
        "window: must be at least 1 s, got '0.1s'",
    ]
    found = refused(knative(min_scale="10", max_scale="5", target_burst_capacity="-0.5"))
    assert sorted(line.removeprefix(place) for line in found) == [
        "max-scale: must be at least min_scale, 10, or 0 for no bound, got '5'",
        "target-burst-capacity: must be -1 or at least 0, got '-0.5'",
    ]


def test_a_bad_setting_of_the_cluster_is_reported_at_its_config_map() -> None:
    config = {
        "kind": "ConfigMap",
        "metadata": {"name": "config-autoscaler"},
        "data": {"max-scale-down-rate": "1"},
    }
    (found,) = refused([config, knative(target="5")])
    place = "manifest, document 1 (ConfigMap config-autoscaler): data"
    assert found == f"{place}.max-scale-down-rate: must be greater than 1, got '1'"


@pytest.mark.parametrize("window", ["3s", "2h", "7.5s"])
def test_a_window_knative_would_refuse_is_warned_about(window: str) -> None:
    assert (
        "window: Knative takes whole seconds from 6s to 1h"
        in load_manifest(knative(window=window)).warnings[0]
    )
    assert load_manifest(knative(window="6s")).warnings == ()


def test_an_endless_window_does_not_fill_the_memory() -> None:
    (found,) = refused(knative(window="100y"))
    assert "window: must be at most 86400 s, got '100y'" in found


# ---------------------------------------------------------------- HPA of every version


WAITING = "vllm:num_requests_waiting"
AVERAGE = {"type": "AverageValue", "averageValue": "5"}
METRICS = "autoscaling.alpha.kubernetes.io/metrics"


def hpa(version: str, *metrics: Any, annotations: Any = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "h"} if annotations is None else {"name": "h", "annotations": annotations}
    listed = {"metrics": list(metrics)} if metrics else {}
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata,
        "spec": {"maxReplicas": 5, **listed, **spec},
    }


def pods(name: Any = WAITING, **target: Any) -> dict[str, Any]:
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": {**AVERAGE, **target}}}


@pytest.mark.parametrize(
    ("manifest", "lines"),
    [
        (hpa("v2", pods(5)), ["spec.metrics[0].pods.metric.name: must be a text, got 5"]),
        (hpa("v2", {"pods": {}}), ["spec.metrics[0].type: is missing"]),
        (
            hpa("v2", {"type": "Pods", "pods": {"target": AVERAGE}}),
            ["spec.metrics[0].pods.metric: is missing"],
        ),
        (
            hpa("v2", {"type": "Resource", "resource": {"name": "nvidia.com/gpu", "target": AVERAGE}}),
            ["there is no model of the resource 'nvidia.com/gpu'; only cpu and memory can be mapped"],
        ),
        (
            hpa("v1", pods(), behavior={}),
            [
                "spec.targetCPUUtilizationPercentage: without metrics an HPA goes by 80 % of cpu",
                "spec.metrics: does not belong to autoscaling/v1; write apiVersion: autoscaling/v2",
                "spec.behavior: does not belong to autoscaling/v1; write apiVersion: autoscaling/v2",
            ],
        ),
        (hpa("v1", annotations={METRICS: "{x"}), [f"metadata.annotations: {METRICS} is no JSON: '{{x'"]),
        (hpa("v1", annotations={METRICS: "[" * 5000}), [f"metadata.annotations: {METRICS} is no JSON: '[["]),
        (hpa("v1", annotations={METRICS: '{"a": 1}'}), [f"metadata.annotations[{METRICS}].a: unknown key"]),
        (
            hpa("v2beta1", {"type": "Pods", "pods": {"targetAverageValue": "5"}}),
            ["spec.metrics[0].pods.metricName: is missing"],
        ),
    ],
)
def test_each_mistake_in_an_hpa_is_reported_once(manifest: dict[str, Any], lines: list[str]) -> None:
    found = refused(manifest)
    assert len(found) == len(lines)
    assert all(line in told for line, told in zip(lines, found, strict=True))


@pytest.mark.parametrize(
    ("manifest", "warning"),
    [
        (hpa("v2", pods(value="7")), "target.value: is not read beside type: AverageValue"),
        (
            hpa("v2", pods(), annotations={METRICS: "[]"}),
            f"metadata.annotations: {METRICS} is not read in autoscaling/v2",
        ),
        (
            hpa(
                "v2beta1",
                {"type": "Pods", "pods": {"metricName": WAITING, "targetAverageValue": 5, "targetValue": 4}},
            ),
            "pods.targetValue: is not read beside targetAverageValue",
        ),
        (
            hpa("v2", pods("vllm:request_success_total")),
            "vllm:request_success_total is a counter; it is read as its rate",
        ),
    ],
)
def test_what_of_an_hpa_is_not_honoured_is_reported(manifest: dict[str, Any], warning: str) -> None:
    (told,) = load_manifest(manifest).warnings
    assert warning in told


def test_one_value_of_the_fleet_cannot_stand_for_one_a_worker() -> None:
    fleet = MetricQuery("router_queue")
    with pytest.raises(ScenarioError, match="'q' stands for router_queue, one value for the whole fleet"):
        load_manifest(hpa("v2", pods("q")), ManifestOptions(metric_map={"q": fleet}))
    with pytest.raises(ScenarioError, match="resource_map: cpu stands for router_queue"):
        load_manifest(hpa("v1"), ManifestOptions(resource_map={"cpu": fleet}))


# ---------------------------------------------------------------- KEDA and files of several documents


def scaled_object(*triggers: Any, **metadata: Any) -> dict[str, Any]:
    return {
        "kind": "ScaledObject",
        "metadata": {"name": "s", **metadata},
        "spec": {"minReplicaCount": 1, "triggers": list(triggers)},
    }


def cron(**changes: Any) -> dict[str, Any]:
    window = {"timezone": "UTC", "start": "0 8 * * *", "end": "0 9 * * *", "desiredReplicas": "4"}
    return {"type": "cron", "metadata": {**window, **changes}}


@pytest.mark.parametrize(
    ("manifest", "line"),
    [
        (
            scaled_object(cron(end="0 8 * * *")),
            "metadata.end: is the same as start: the window would never be open",
        ),
        (scaled_object(cron(timezone=5)), "metadata.timezone: must be a text, got 5"),
        (
            scaled_object(cron(timezone="Mars/X")),
            "metadata.timezone: must be a time zone like Europe/Berlin or UTC, got 'Mars/X'",
        ),
        (
            scaled_object(cron(start="8 am")),
            "metadata.start: must be a cron expression of five fields like 0 8 * * 1-5, got '8 am'",
        ),
        (
            scaled_object(cron(end="0 99 * * *")),
            "metadata.end: must be a cron expression like 0 8 * * 1-5 (Bad hour)",
        ),
        (scaled_object({"metadata": {}}), "spec.triggers[0].type: is missing"),
        (scaled_object({"type": 5}), "spec.triggers[0].type: must be a text, got 5"),
        (scaled_object("x"), "spec.triggers[0]: must be a mapping, got 'x'"),
        (scaled_object(cron(), annotations=5), "metadata.annotations: must be a mapping, got 5"),
        ({"kind": "scaledobject"}, "ScaledObject or Knative Service; there is scaledobject"),
        ([scaled_object(cron()), scaled_object(cron())], "(ScaledObject 's', ScaledObject 's'); leave one"),
    ],
)
def test_each_mistake_in_a_scaled_object_is_reported_once(manifest: Any, line: str) -> None:
    (found,) = refused(manifest)
    assert line in found


def test_paused_objects_and_unrelated_documents_are_reported() -> None:
    paused = scaled_object(cron(), annotations={"autoscaling.keda.sh/paused": "true"})
    several: list[Any] = [{"kind": "Deployment", "metadata": {"name": "d"}}, None, paused]
    warnings = load_manifest(several).warnings
    assert warnings == (
        "manifest, document 1 (Deployment d): a Deployment is no autoscaler and is not read",
        "manifest, document 3 (ScaledObject s): metadata.annotations: autoscaling.keda.sh/paused has no effect here",
    )


def test_many_unrelated_documents_are_reported_in_one_line() -> None:
    others = [{"kind": "ConfigMap"}] * 300 + [{"kind": "Secret"}]
    assert load_manifest([*others, scaled_object(cron())]).warnings == (
        "manifest: 301 documents are no autoscaler and are not read: 300 ConfigMap, 1 Secret",
    )


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = scaled_object(cron())
    for _ in range(levels):
        found = {"kind": "List", "items": [found]}
    return found


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (None, "a manifest is a path, a text or its documents, got None"),
        (5, "a manifest is a path, a text or its documents, got 5"),
        ("a\x00b", "cannot be read: embedded null byte"),
        ("~no_such_user_here/x.yaml", "cannot be read: "),
        (Path("/"), "/: cannot be read: Is a directory"),
        (nested(3000), "Lists in more than 20 Lists are not read"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(source: Any, line: str) -> None:
    (found,) = refused(source)
    assert line in found
    assert load_manifest(nested(3)).kind == "keda"
