"""Small manifests that would take endless time or memory are refused at once, with one line each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_sim.autoscaling import load_manifest
from dynamo_sim.errors import ScenarioError

TRIGGER = {"type": "prometheus", "metadata": {"query": "sum(vllm:num_requests_waiting)", "threshold": "5"}}


def scaled_object(*triggers: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "llm"},
        "spec": {"triggers": list(triggers or (TRIGGER,)), **spec},
    }


def queried(query: str) -> dict[str, Any]:
    return scaled_object({"type": "prometheus", "metadata": {"query": query, "threshold": "5"}})


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    begun = time.process_time()
    yield
    assert time.process_time() - begun < 5.0


def repeated_lists(innermost: str, item: str) -> str:
    """Nine levels of lists, each with the level before it ten times."""
    lines = [f"- &a0 {innermost}"]
    for level in range(1, 9):
        names = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"- &a{level} " + item.format(names))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (repeated_lists("[x, x]", "[{}]"), "must be a mapping with kind and spec"),
        (
            "kind: List\nitems:\n"
            + repeated_lists("{kind: List, items: [{kind: X}]}", "{{kind: List, items: [{}]}}"),
            "more than 10,000 documents",
        ),
        (
            "kind: List\nitems:\n" + repeated_lists("{kind: List, items: []}", "{{kind: List, items: [{}]}}"),
            "more than 10,000 documents",
        ),
        ("kind: ScaledObject\nspec: " + "[" * 400 + "]" * 400, "nested too deeply"),
        ("kind: X\nspec: " + "{a: " * 60 + "1" + "}" * 60, "nested too deeply"),
        ('kind: ScaledObject\nmetadata: {name: "q\\ud800"}', "half of a surrogate pair"),
    ],
)
def test_bombs_of_yaml(text: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        load_manifest(text + "\n")


def test_merged_keys_have_a_limit() -> None:
    chain = ["a0: &a0 {k0: 1}"] + [f"a{i}: &a{i} {{<<: *a{i - 1}, k{i}: 1}}" for i in range(1, 2000)]
    with pytest.raises(ScenarioError, match="brings in more than 100,000 keys"):
        load_manifest("\n".join(chain))


def test_pairs_of_surrogates_are_letters() -> None:
    text = 'kind: Service\nmetadata: {name: "\\ud83d\\ude00"}\n'
    with pytest.raises(ScenarioError, match="no autoscaler in it"):
        load_manifest(text)


@pytest.mark.parametrize("depth", [60, 470, 900, 100_000])
def test_annotations_have_a_depth(depth: int) -> None:
    metrics = '[{"type": "Pods", "pods": ' + '{"a": ' * depth + "1" + "}" * depth + "}]"
    manifest = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "x", "annotations": {"autoscaling.alpha.kubernetes.io/metrics": metrics}},
        "spec": {"maxReplicas": 3},
    }
    with pytest.raises(ScenarioError, match=r"nested too deeply|is no JSON"):
        load_manifest(manifest)


@pytest.mark.parametrize(
    "query",
    [
        "1" * 3000 + "a",
        "[" * 100_000,
        "(" * 190,
        "sum(" * 60 + "vllm:num_requests_waiting" + ")" * 60,
        "{'" * 4000,
        "1.1." * 2000,
        "a[1" * 3000,
        "vllm:num_requests_waiting{a='" + "x" * 20_000 + "'}",
    ],
)
def test_hostile_queries(query: str) -> None:
    with pytest.raises(ScenarioError, match="is not understood") as caught:
        load_manifest(queried(query))
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("formula", ["-" * 190 + "q", "(" * 150, "ceil(9)^ceil(9)^ceil(9)", "q^q^q^q^q^q^q"])
def test_hostile_formulas(formula: str) -> None:
    named = {**TRIGGER, "name": "q"}
    manifest = scaled_object(named, advanced={"scalingModifiers": {"formula": formula, "target": "5"}})
    try:
        load_manifest(manifest)
    except ScenarioError as error:
        assert "nested too deeply" in str(error) or "ends too early" in str(error)


def test_lists_and_unknown_keys_have_a_limit() -> None:
    with pytest.raises(ScenarioError, match=r"triggers: has 20,000 entries; at most 100 are read"):
        load_manifest(scaled_object(*[TRIGGER] * 20_000))
    with pytest.raises(ScenarioError) as caught:
        load_manifest(scaled_object(**{f"key{i}": 1 for i in range(30_000)}))
    assert len(caught.value.problems) == 21
    assert caught.value.problems[-1].endswith("has 29,980 more unknown keys")
