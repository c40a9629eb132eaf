"""From the keys of a scenario to the controllers of Kubernetes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dynamo_sim.autoscaling.kubernetes.hpa import HpaMetric, HpaPolicy, HpaSpec
from dynamo_sim.autoscaling.kubernetes.hpa.quantity import quantity_milli
from dynamo_sim.autoscaling.kubernetes.hpa.spec import TOTAL_TYPES
from dynamo_sim.autoscaling.kubernetes.keda import KedaPolicy, ScaledObjectSpec
from dynamo_sim.autoscaling.kubernetes.keda.formula import Formula
from dynamo_sim.autoscaling.kubernetes.keda.formula_check import misread_names, shared_names
from dynamo_sim.autoscaling.kubernetes.keda.spec import (
    CronTrigger,
    MetricTrigger,
    Modifiers,
    Trigger,
)
from dynamo_sim.autoscaling.kubernetes.kpa import KpaPolicy
from dynamo_sim.autoscaling.kubernetes.manifests.load import load_manifest
from dynamo_sim.autoscaling.kubernetes.manifests.options import ManifestOptions
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policy import Policy
from dynamo_sim.cron import CronWindow, parse_start
from dynamo_sim.scenario import autoscaler as specs
from dynamo_sim.scenario.autoscaler.manifest import FromManifest, ManifestKeys, is_inline

KINDS = ("hpa", "keda", "kpa", "manifest")
"""Kinds of policies that are made here."""


def build_kubernetes(spec: FromManifest, folder: Path | None) -> tuple[Policy, str, list[str]]:
    """The controller of a spec, its kind, and what has to be said about its manifest.

    Args:
        spec: of one of `KINDS`.
        folder: of the scenario, for how messages call files.

    Raises:
        ValueError: the manifest or the keys cannot be used.
    """
    if spec.manifest is not None:
        return _from_manifest(spec, folder)
    if isinstance(spec, specs.HpaScaling):
        return _hpa(spec), spec.kind, []
    if isinstance(spec, specs.KedaScaling):
        return _keda(spec), spec.kind, []
    assert isinstance(spec, specs.KpaScaling)
    return KpaPolicy(spec), spec.kind, []


def _from_manifest(spec: FromManifest, folder: Path | None) -> tuple[Policy, str, list[str]]:
    source, called = spec.manifest, None
    if isinstance(source, str) and not is_inline(source):
        source = Path(source)
        called = _as_written(source, folder)
    manifest = load_manifest(source, _options(spec), spec.name, called)
    if spec.kind not in ("manifest", manifest.kind):  # type: ignore[attr-defined]
        raise ValueError(f"the manifest is one of kind {manifest.kind!r}, not {spec.kind!r}")  # type: ignore[attr-defined]
    return manifest.policy(), manifest.kind, list(manifest.warnings)


def _hpa(spec: specs.HpaScaling) -> Policy:
    metrics = tuple(
        HpaMetric(
            metric.source,
            metric.target_type,
            quantity_milli(metric.target),
            MetricQuery.of_fleet(metric) if metric.source in TOTAL_TYPES else MetricQuery.of(metric),
            metric.name,
        )
        for metric in spec.metrics
    )
    assert spec.max_replicas is not None
    return HpaPolicy(HpaSpec(spec.max_replicas, spec.min_replicas, metrics, spec.behavior), spec)


def _keda(spec: specs.KedaScaling) -> Policy:
    triggers = tuple(_trigger(trigger, spec) for trigger in spec.triggers)
    return KedaPolicy(ScaledObjectSpec(triggers, spec, _modifiers(spec, triggers)), spec)


def _as_written(path: Path, folder: Path | None) -> str:
    """A path as it stands in the scenario, or was given on the command line; those are absolute by now."""
    starts = [] if folder is None else [folder]
    with suppress(FileNotFoundError):  # a folder that is not there any more
        starts.append(Path.cwd())
    inside = [str(path.relative_to(start)) for start in starts if path.is_relative_to(start)]
    beside = [os.path.relpath(path, start) for start in starts[:1]]
    return inside[0] if inside else min(str(path), *beside, key=len)


def _options(keys: ManifestKeys) -> ManifestOptions:
    return ManifestOptions(
        keys,
        {name: MetricQuery.of(metric) for name, metric in keys.metric_map.items()},
        {name: MetricQuery.of(metric) for name, metric in keys.resource_map.items()},
        parse_start(keys.start_of_run),
    )


def _trigger(spec: specs.MetricTriggerSpec | specs.CronTriggerSpec, options: specs.KedaScaling) -> Trigger:
    if isinstance(spec, specs.CronTriggerSpec):
        window = CronWindow(spec.start, spec.end, spec.timezone, parse_start(options.start_of_run))
        return CronTrigger(window, spec.desired, spec.name, use_cached=spec.use_cached)
    return MetricTrigger(
        MetricQuery.of_fleet(spec),
        quantity_milli(spec.threshold),
        spec.activation,
        spec.metric_type,
        spec.name,
        spec.ignore_null,
        spec.use_cached,
    )


def _modifiers(spec: specs.KedaScaling, triggers: Sequence[Trigger]) -> Modifiers | None:
    for name in shared_names(triggers):
        raise ValueError(f"triggers: several are named {name!r}")
    given = spec.modifiers
    if given is None:
        return None
    formula = Formula(given.formula)
    for problem in misread_names(formula, triggers):
        raise ValueError(f"modifiers.formula: {problem}")
    return Modifiers(formula, quantity_milli(given.target), given.activation, given.metric_type)
