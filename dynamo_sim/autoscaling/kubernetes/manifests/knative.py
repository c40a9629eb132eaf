"""Knative annotations: Service, Configuration, Revision, PodAutoscaler, and the cluster's config-autoscaler
(`spec 10, 4.1`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from dynamo_sim.autoscaling.kubernetes.manifests.section import Section
from dynamo_sim.scenario.autoscaler.kpa import KpaScaling
from dynamo_sim.scenario.explain import explain
from dynamo_sim.text import shown

PREFIX = "autoscaling.knative.dev/"

Settings = dict[str, tuple[Any, Section, str]]
"""Values by the keys of `KpaScaling`, and where each was written."""

_NUMBERS = {
    "target": "target",
    "target-utilization-percentage": "utilization",
    "panic-window-percentage": "panic_window_percentage",
    "panic-threshold-percentage": "panic_threshold_percentage",
    "target-burst-capacity": "target_burst_capacity",
    "max-scale-up-rate": "max_scale_up_rate",
    "max-scale-down-rate": "max_scale_down_rate",
    "container-concurrency-target-default": "concurrency_target_default",
    "container-concurrency-target-percentage": "concurrency_utilization",
    "requests-per-second-target-default": "rps_target_default",
}
_COUNTS = {
    "min-scale": "min_scale",
    "max-scale": "max_scale",
    "initial-scale": "initial_scale",
    "activation-scale": "activation_scale",
}
_DURATIONS = {
    "window": "window_s",
    "stable-window": "window_s",
    "scale-down-delay": "scale_down_delay_s",
    "scale-to-zero-grace-period": "scale_to_zero_grace_period_s",
    "scale-to-zero-pod-retention-period": "scale_to_zero_pod_retention_period_s",
}
_FLAGS = {"enable-scale-to-zero": "enable_scale_to_zero"}
_CAMEL = {
    "minScale": "min-scale",
    "maxScale": "max-scale",
    "initialScale": "initial-scale",
    "targetUtilizationPercentage": "target-utilization-percentage",
    "targetBurstCapacity": "target-burst-capacity",
    "panicWindowPercentage": "panic-window-percentage",
    "panicThresholdPercentage": "panic-threshold-percentage",
    "scaleToZeroPodRetentionPeriod": "scale-to-zero-pod-retention-period",
    "scaleDownDelay": "scale-down-delay",
    "activationScale": "activation-scale",
}


def read_config(document: Section) -> Settings:
    """Settings of the ConfigMap ``config-autoscaler``."""
    data = document.section("data")
    if data is None:
        return {}
    found: Settings = {}
    for key in data.data:
        if str(key).startswith("_"):
            continue
        if not _read(data, key, key, found):
            data.warn(key, "has no effect here")
    return found


def read_knative(document: Section, config: Settings) -> KpaScaling:
    """The settings of a revision; problems and warnings go to the document's findings.

    Args:
        config: of `read_config`.
    """
    metadata = document.section("metadata") or Section({}, "metadata", document.findings)
    spec = document.section("spec") or Section({}, document.at("spec"), document.findings)
    annotated, inner = metadata, spec
    template = spec.section("template")
    if template is not None:
        annotated = template.section("metadata") or Section({}, template.at("metadata"), document.findings)
        inner = template.section("spec") or Section({}, template.at("spec"), document.findings)
        _misplaced(metadata)
    found: Settings = dict(config)
    annotations = annotated.section("annotations") or Section(
        {}, annotated.at("annotations"), document.findings
    )
    for key in annotations.data:
        if str(key).startswith(PREFIX):
            _annotation(annotations, str(key), found)
    if inner.has("containerConcurrency"):
        limit = inner.integer("containerConcurrency", 0, 0)
        found["container_concurrency"] = limit, inner, "containerConcurrency"
        if limit > 0:
            inner.warn(
                "containerConcurrency",
                "caps the target and sizes a worker; it does not limit the requests a worker takes at once",
            )
    try:
        return KpaScaling(**{name: value for name, (value, _, _) in found.items()})
    except ValidationError as error:
        for problem in explain(error, KpaScaling):
            field = str(problem.path[0])
            _, section, key = found.get(field, (None, annotations, ""))
            demand = problem.text.rpartition("; ")[2] + (" s" if field.endswith("_s") else "")
            section.problem(key, f"{demand}, got {shown(section.get(key))}")
        return KpaScaling()


def _annotation(section: Section, key: str, found: Settings) -> None:
    short = key.removeprefix(PREFIX)
    short = _CAMEL.get(short, short)
    if short == "class":
        kind = section.required(key)
        if kind and not kind.startswith("kpa."):
            section.problem(key, f"only the class kpa.autoscaling.knative.dev is known, got {kind!r}")
    elif short == "metric":
        found["metric"] = section.text(key, "concurrency", ("concurrency", "rps")), section, key
    elif short == "metric-aggregation-algorithm":
        if section.get(key) != "linear":
            section.warn(key, "the weighted exponential average has no counterpart; the linear one is used")
    elif not _read(section, key, short, found):
        section.warn(key, "has no effect here")


def _read(section: Section, key: str, short: str, found: Settings) -> bool:
    """Read one setting into ``found`` unless there is a problem with it; False when it is not known."""
    field = next((known[short] for known in (_NUMBERS, _COUNTS, _DURATIONS, _FLAGS) if short in known), None)
    if field is None:
        return False
    if not section.has(key):
        section.problem(key, "has no value")
        return True
    problems = len(section.findings.problems)
    value: Any
    if short in _NUMBERS:
        value = section.number(key, 0.0, quoted=True)
        if short == "target-utilization-percentage" or (
            short == "container-concurrency-target-percentage" and value > 1  # there 0.7 is 70 %
        ):
            value /= 100
            if not 0 < value <= 1:
                section.problem(key, f"must be above 0 and at most 100, got {value * 100:g}")
    elif short in _COUNTS:
        value = section.integer(key, 0, 0, quoted=True)
    elif short in _DURATIONS:
        value = section.seconds(key, 0.0)
        _doubt(section, key, short, value)
    else:
        value = section.boolean(key, True, quoted=True)
    if len(section.findings.problems) == problems:
        found[field] = value, section, key
    return True


def _doubt(section: Section, key: str, short: str, seconds: float) -> None:
    """A warning about durations that the simulation takes and Knative does not."""
    if short in ("window", "stable-window") and (not 6 <= seconds <= 3600 or seconds % 1) and seconds >= 1:
        section.warn(key, f"Knative takes whole seconds from 6s to 1h; {seconds:g} s are used here")


def _misplaced(metadata: Section) -> None:
    """Annotations on a Service itself do nothing: they belong on its template."""
    annotations = metadata.data.get("annotations")
    if isinstance(annotations, Mapping):
        for key in annotations:
            if str(key).startswith(PREFIX):
                metadata.warn(
                    "annotations", f"{key} has no effect there: it belongs under spec.template.metadata"
                )
