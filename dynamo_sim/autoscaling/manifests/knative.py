"""Knative annotations: Service, Configuration, Revision, PodAutoscaler, and the cluster's config-autoscaler
(`spec 10, 4.1`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo_sim.autoscaling.kpa.settings import KpaSettings
from dynamo_sim.autoscaling.manifests.section import Section, duration_s

PREFIX = "autoscaling.knative.dev/"

_NUMBERS = {
    "target": "target",
    "target-utilization-percentage": "utilization",
    "panic-window-percentage": "panic_window_percentage",
    "panic-threshold-percentage": "panic_threshold_percentage",
    "target-burst-capacity": "target_burst_capacity",
    "max-scale-up-rate": "max_scale_up_rate",
    "max-scale-down-rate": "max_scale_down_rate",
    "container-concurrency-target-default": "concurrency_target_default",
    "container-concurrency-target-percentage": "utilization",
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


def read_config(document: Section) -> dict[str, Any]:
    """Settings of the ConfigMap ``config-autoscaler``."""
    data = document.section("data")
    if data is None:
        return {}
    found: dict[str, Any] = {}
    for key in data.data:
        if key.startswith("_"):
            continue
        if not _read(data, key, key, found):
            data.warn(key, "has no effect here")
    return found


def read_knative(document: Section, config: Mapping[str, Any]) -> KpaSettings:
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
    found: dict[str, Any] = dict(config)
    annotations = annotated.section("annotations") or Section(
        {}, annotated.at("annotations"), document.findings
    )
    for key in annotations.data:
        if str(key).startswith(PREFIX):
            _annotation(annotations, str(key), found)
    if inner.has("containerConcurrency"):
        limit = inner.number("containerConcurrency", 0.0, 0)
        found["container_concurrency"] = limit
        if limit > 0:
            inner.warn(
                "containerConcurrency",
                "caps the target and sizes a worker; it does not limit the requests a worker takes at once",
            )
    try:
        return KpaSettings(**found, name=metadata.text("name"))
    except ValueError as error:
        if not document.findings.problems:  # else it may only follow from them
            annotations.problem("", str(error))
        return KpaSettings()


def _annotation(section: Section, key: str, found: dict[str, Any]) -> None:
    short = key.removeprefix(PREFIX)
    short = _CAMEL.get(short, short)
    if short == "class":
        kind = section.text(key)
        if not kind.startswith("kpa."):
            section.problem(key, f"only the class kpa.autoscaling.knative.dev is known, got {kind!r}")
    elif short == "metric":
        found["metric"] = section.text(key, "concurrency", ("concurrency", "rps"))
    elif short == "metric-aggregation-algorithm":
        if section.get(key) != "linear":
            section.warn(key, "the weighted exponential average has no counterpart; the linear one is used")
    elif not _read(section, key, short, found):
        section.warn(key, "has no effect here")


def _read(section: Section, key: str, short: str, found: dict[str, Any]) -> bool:
    """Read one setting into ``found``; False when it is not known."""
    if short in _NUMBERS:
        number = section.number(key, 0.0, quoted=True)
        if short == "target-utilization-percentage" or (
            short == "container-concurrency-target-percentage" and number > 1  # there 0.7 is 70 %
        ):
            number /= 100
        found[_NUMBERS[short]] = number
    elif short in _COUNTS:
        found[_COUNTS[short]] = section.integer(key, 0, 0, quoted=True)
    elif short in _DURATIONS:
        value = section.get(key)
        seconds = duration_s(value) if isinstance(value, str) else None
        if seconds is None:
            section.problem(key, f"must be a duration such as 60s or 1m30s, got {value!r}")
        else:
            found[_DURATIONS[short]] = seconds
    elif short in _FLAGS:
        found[_FLAGS[short]] = section.boolean(key, True, quoted=True)
    else:
        return False
    return True


def _misplaced(metadata: Section) -> None:
    """Annotations on a Service itself do nothing: they belong on its template."""
    annotations = metadata.data.get("annotations")
    if isinstance(annotations, Mapping):
        for key in annotations:
            if str(key).startswith(PREFIX):
                metadata.warn(
                    "annotations", f"{key} has no effect there: it belongs under spec.template.metadata"
                )
