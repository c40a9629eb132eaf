"""Odd manifests: each is read or refused in lines that say where and why; none ends in a traceback or in silence."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.autoscaling.hpa.quantity import parse_quantity
from dynamo_sim.autoscaling.manifests import load_manifest
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
    assert all("\n" not in line and len(line) < 250 for line in caught.value.problems)
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


def test_what_is_no_mapping_is_told_once() -> None:
    text = HPA.replace("    - type: Pods\n", "    - 5\n    - type: Pods\n")
    assert refused(text) == [
        "manifest (HorizontalPodAutoscaler x): spec.metrics[0]: must be a mapping, got 5",
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


def test_all_annotations_out_of_range_are_told_with_their_keys() -> None:
    found = refused(
        knative(
            target="0",
            window="0.1s",
            panic_window_percentage="0.5",
            activation_scale="0",
            metric="cpu",
            min_scale="10",
            max_scale="5",
            target_burst_capacity="-2",
            initial_scale="x",
        )
    )
    place = "manifest (Service k): spec.template.metadata.annotations.autoscaling.knative.dev/"
    assert sorted(line.removeprefix(place) for line in found) == [
        "activation-scale: must be at least 1, got 0",
        "initial-scale: must be a number, got 'x'",
        "max-scale: must be at least min-scale, 10, or 0 for none; got 5",
        "metric: must be one of concurrency, rps, got 'cpu'",
        "panic-window-percentage: must be from 1 % to 100 %, got 0.5",
        "target-burst-capacity: must be -1 or at least 0, got -2",
        "target: must be above 0, got 0",
        "window: must be from 1 s to 86400 s, got 0.1 s",
    ]


def test_a_bad_setting_of_the_cluster_is_told_at_its_config_map() -> None:
    config = {
        "kind": "ConfigMap",
        "metadata": {"name": "config-autoscaler"},
        "data": {"max-scale-down-rate": "1"},
    }
    (found,) = refused([config, knative(target="5")])
    assert (
        found
        == "manifest, document 1 (ConfigMap config-autoscaler): data.max-scale-down-rate: must be above 1, got 1"
    )


@pytest.mark.parametrize("window", ["3s", "2h", "7.5s"])
def test_a_window_knative_would_refuse_is_warned_about(window: str) -> None:
    assert (
        "window: Knative takes whole seconds from 6s to 1h"
        in load_manifest(knative(window=window)).warnings[0]
    )
    assert load_manifest(knative(window="6s")).warnings == ()


def test_an_endless_window_does_not_fill_the_memory() -> None:
    (found,) = refused(knative(window="100y"))
    assert "window: must be from 1 s to 86400 s" in found
