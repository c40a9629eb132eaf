"""HorizontalPodAutoscaler manifests: autoscaling/v2, v2beta2, v2beta1, v1 (`spec 10, 2.1`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dynamo_sim.autoscaling.kubernetes.hpa.spec import TOTAL_TYPES, HpaMetric, HpaSpec
from dynamo_sim.autoscaling.kubernetes.manifests.behavior import read_behavior
from dynamo_sim.autoscaling.kubernetes.manifests.options import ManifestOptions
from dynamo_sim.autoscaling.kubernetes.manifests.section import Section
from dynamo_sim.metric_catalogue import Kind
from dynamo_sim.scenario.autoscaler.behavior import BehaviorSpec
from dynamo_sim.scenario.yaml_source import MAX_DEPTH
from dynamo_sim.text import shown

NEW_VERSIONS = ("autoscaling/v2", "autoscaling/v2beta2")
API_VERSIONS = (*NEW_VERSIONS, "autoscaling/v2beta1", "autoscaling/v1")

DEFAULT_CPU_PERCENT = 80
"""What an HPA without metrics goes by: mean cpu utilisation."""

_FIELDS = {
    "Pods": "pods",
    "Object": "object",
    "External": "external",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/metrics"
_BEHAVIOR_ANNOTATION = "autoscaling.alpha.kubernetes.io/behavior"
OLD_ANNOTATIONS = (_METRICS_ANNOTATION, _BEHAVIOR_ANNOTATION)


def read_hpa(document: Section, options: ManifestOptions) -> HpaSpec:
    """The spec of an HPA; problems and warnings go to the document's findings."""
    version = document.text("apiVersion", "autoscaling/v2")
    if version not in API_VERSIONS:
        document.problem("apiVersion", f"must be one of {', '.join(API_VERSIONS)}, got {version!r}")
    metadata = document.section("metadata") or Section({}, "metadata", document.findings)
    document.ignore("kind", "status")
    spec = document.section("spec")
    document.finish()
    if spec is None:
        document.problem("spec", "is missing")
        return HpaSpec(1)
    spec.ignore("scaleTargetRef")
    for key in OLD_ANNOTATIONS if version in NEW_VERSIONS else ():
        if isinstance(metadata.data.get("annotations"), Mapping) and key in metadata.data["annotations"]:
            metadata.warn("annotations", f"{key} is not read in {version}")
    if not spec.has("maxReplicas"):
        spec.problem("maxReplicas", "is missing")
    most = spec.integer("maxReplicas", 1, 1)
    least = spec.integer("minReplicas", 1, 0)
    behavior: BehaviorSpec | None = None
    if version in NEW_VERSIONS:
        section = spec.section("behavior")
        behavior = None if section is None else read_behavior(section)
    elif (annotated := _annotation(metadata, _BEHAVIOR_ANNOTATION)) is not None:
        behavior = read_behavior(_lower_keys(annotated))
    metrics = _metrics(spec, metadata, version, options)
    for key in ("metrics", "behavior"):
        if spec.data.get(key) is not None and not spec.knows(key):
            spec.problem(key, f"does not belong to {version}; write apiVersion: autoscaling/v2")
            spec.ignore(key)
    spec.finish()
    if most < least:
        spec.problem("maxReplicas", f"is below minReplicas ({least})")
    if least == 0:
        if not options.hpa.scale_to_zero:
            spec.problem("minReplicas", "0 needs scale_to_zero: true (the feature gate HPAScaleToZero)")
        elif not any(metric.source in TOTAL_TYPES for metric in metrics):
            spec.problem("minReplicas", "0 needs at least one Object or External metric")
    return HpaSpec(most, least, tuple(metrics), behavior, metadata.text("name"))


def _metrics(spec: Section, metadata: Section, version: str, options: ManifestOptions) -> list[HpaMetric]:
    if version == "autoscaling/v1":
        return _metrics_v1(spec, metadata, options)
    read = _metric_v2beta1 if version == "autoscaling/v2beta1" else _metric_v2
    entries = spec.sections("metrics")
    if not entries:
        if spec.get("metrics", []) != []:
            return []
        return _cpu(spec, "metrics", DEFAULT_CPU_PERCENT, options)
    return [metric for entry in entries if (metric := read(entry, options)) is not None]


def _metrics_v1(spec: Section, metadata: Section, options: ManifestOptions) -> list[HpaMetric]:
    found, problems = [], len(spec.findings.problems)
    annotated = _annotation(metadata, _METRICS_ANNOTATION)
    if annotated is not None:
        for entry in annotated.sections("metrics"):
            metric = _metric_v2beta1(_lower_keys(entry), options)
            if metric is not None:
                found.append(metric)
        annotated.finish()
    explained = len(spec.findings.problems) > problems
    if spec.has("targetCPUUtilizationPercentage") or not (found or explained):
        percent = spec.integer("targetCPUUtilizationPercentage", DEFAULT_CPU_PERCENT, 1)
        found.extend(_cpu(spec, "targetCPUUtilizationPercentage", percent, options))
    return found


def _cpu(spec: Section, key: str, percent: int, options: ManifestOptions) -> list[HpaMetric]:
    try:
        return [HpaMetric("Resource", "Utilization", percent, options.resource("cpu"), "cpu")]
    except ValueError as error:
        what = "" if spec.has(key) else f"without metrics an HPA goes by {percent} % of cpu; "
        spec.problem(key, f"{what}{error}")
        return []


def _typed(entry: Section) -> tuple[str, Section] | None:
    """The type of a metric, and the section of that type."""
    kind = entry.required("type", tuple(_FIELDS))
    if not kind:
        return None
    inner = entry.section(_FIELDS[kind])
    entry.finish()
    if inner is None:
        entry.problem(_FIELDS[kind], f"is missing beside type: {kind}")
        return None
    return kind, inner


def _metric_v2(entry: Section, options: ManifestOptions) -> HpaMetric | None:
    typed = _typed(entry)
    if typed is None:
        return None
    kind, inner = typed
    target = inner.section("target")
    resource = kind in ("Resource", "ContainerResource")
    if resource:
        name = inner.required("name")
        inner.ignore("container", why="containers are not told apart; the whole worker counts")
    else:
        metric = inner.section("metric")
        if metric is None:
            inner.problem("metric", "is missing")
        name = "" if metric is None else metric.required("name")
        if metric is not None:
            metric.ignore("selector", why="label selectors are ignored")
            metric.finish()
        inner.ignore("describedObject")
    inner.finish()
    if target is None:
        inner.problem("target", "is missing")
    if not name or target is None:
        return None
    source = "Resource" if resource else kind
    found = _target_v2(target, source)
    return None if found is None else _made(inner, source, name, *found, options)


def _target_v2(target: Section, source: str) -> tuple[str, int] | None:
    allowed = {
        "Pods": ("AverageValue",),
        "Resource": ("Utilization", "AverageValue"),
        "Object": ("Value", "AverageValue"),
        "External": ("Value", "AverageValue"),
    }[source]
    keys = {"Utilization": "averageUtilization", "AverageValue": "averageValue", "Value": "value"}
    kind = target.text("type", "")
    if not kind:  # old manifests leave it out
        kind = next((each for each in allowed if target.has(keys[each])), "")
    if kind not in allowed:
        target.problem("type", f"of {source} metrics must be {' or '.join(allowed)}, got {kind!r}")
        return None
    number = (
        target.integer(keys[kind], 0, 1)
        if kind == "Utilization" and target.has(keys[kind])
        else target.milli(keys[kind])
    )
    others = [key for key in keys.values() if key != keys[kind]]
    target.ignore(*others, why=f"is not read beside type: {kind}")
    target.finish()
    return None if not number else (kind, number)


def _metric_v2beta1(entry: Section, options: ManifestOptions) -> HpaMetric | None:
    typed = _typed(entry)
    if typed is None:
        return None
    kind, inner = typed
    resource = kind in ("Resource", "ContainerResource")
    name = inner.required("name" if resource else "metricName")
    inner.ignore("selector", "metricSelector", why="label selectors are ignored")
    inner.ignore("container", why="containers are not told apart; the whole worker counts")
    inner.ignore("target")  # of an Object: which object
    source = "Resource" if resource else kind
    percent, average, value = "targetAverageUtilization", "targetAverageValue", "targetValue"
    kinds = {percent: "Utilization", average: "AverageValue", "averageValue": "AverageValue", value: "Value"}
    if resource and inner.has(percent):
        key = percent
    elif source == "Object" and inner.has("averageValue"):
        key = "averageValue"
    elif source in TOTAL_TYPES and not inner.has(average):
        key = value
    else:
        key = average
    found = inner.integer(key, 0, 1) if key == percent else inner.milli(key)
    inner.ignore(*(other for other in kinds if other != key), why=f"is not read beside {key}")
    inner.finish()
    return _made(inner, source, name, kinds[key], found, options) if name and found else None


def _made(
    section: Section, source: str, name: str, target_type: str, target: int, options: ManifestOptions
) -> HpaMetric | None:
    total = source in TOTAL_TYPES
    try:
        query = options.resource(name) if source == "Resource" else options.named(name, total)
    except ValueError as error:
        section.problem("", str(error))
        return None
    if not total and not query.spec.per_worker:
        section.problem(
            "", f"{name!r} stands for {query.metric}, one value for the whole fleet, not one a worker"
        )
        return None
    if source != "Resource" and name not in options.metric_map and query.spec.kind is Kind.COUNTER:
        section.warn(
            "", f"{name} is a counter; it is read as its rate over the window of the metrics section"
        )
    if total and name not in options.metric_map and query.spec.per_worker and query.reduce == "sum":
        section.warn("", f"the metric {name} is read as the sum of {query.metric} over the workers")
    return HpaMetric(source, target_type, target, query, name)


def _annotation(metadata: Section, key: str) -> Section | None:
    annotations = metadata.data.get("annotations")
    if not isinstance(annotations, Mapping) or key not in annotations:
        return None
    place = f"{metadata.place}.annotations[{key}]"
    try:
        data: Any = json.loads(annotations[key])
    except (TypeError, ValueError, RecursionError):
        metadata.problem("annotations", f"{key} is no JSON: {shown(annotations[key])}")
        return None
    if _is_deeper(data, MAX_DEPTH):
        metadata.problem("annotations", f"{key} is nested too deeply")
        return None
    if isinstance(data, list):
        data = {"metrics": data}
    return Section(data, place, metadata.findings, metadata.line("annotations"))


def _is_deeper(data: Any, levels: int) -> bool:
    """Whether lists and mappings are inside each other on more than so many levels."""
    inner = data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ()
    return any(levels == 0 or _is_deeper(item, levels - 1) for item in inner)


def _lower_keys(section: Section) -> Section:
    """Annotations written by the API server may carry capitalised keys."""
    return Section(_lowered(section.data), section.place, section.findings, section.line())


def _lowered(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(key)[:1].lower() + str(key)[1:]: _lowered(value) for key, value in data.items()}
    return [_lowered(item) for item in data] if isinstance(data, list) else data
