"""KEDA ScaledObject manifests (`spec 10, 3.1`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dynamo_sim.autoscaling.kubernetes.hpa.quantity import parse_quantity
from dynamo_sim.autoscaling.kubernetes.hpa.spec import HpaMetric
from dynamo_sim.autoscaling.kubernetes.keda.formula import Formula
from dynamo_sim.autoscaling.kubernetes.keda.formula_check import misread_names, shared_names
from dynamo_sim.autoscaling.kubernetes.keda.spec import (
    CronTrigger,
    MetricTrigger,
    Modifiers,
    ResourceTrigger,
    ScaledObjectSpec,
    Trigger,
)
from dynamo_sim.autoscaling.kubernetes.manifests.advice import NOTHING_FITS, map_line_of_query
from dynamo_sim.autoscaling.kubernetes.manifests.behavior import read_behavior
from dynamo_sim.autoscaling.kubernetes.manifests.options import ManifestOptions
from dynamo_sim.autoscaling.kubernetes.manifests.section import Findings, Section
from dynamo_sim.autoscaling.kubernetes.promql.reading import Mapped, ends_in_zero, parse_promql
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.cron import CronWindow, check_expression, time_zone
from dynamo_sim.metric_catalogue import Kind
from dynamo_sim.scenario.autoscaler.behavior import BehaviorSpec
from dynamo_sim.scenario.autoscaler.keda import FALLBACK_BEHAVIORS, FallbackSpec, ScaledObjectKeys
from dynamo_sim.text import shown

_CONNECTION = (
    "serverAddress",
    "metricName",
    "namespace",
    "unsafeSsl",
    "cortexOrgID",
    "customHeaders",
    "customAuthHeader",
    "customAuthValue",
    "queryParameters",
    "timeout",
    "authModes",
    "awsRegion",
    "azureManagedPrometheus",
)
"""Where and how Prometheus is reached: nothing of it matters here."""

_AUTHENTICATION = (
    *("identityOwner", "identityId", "identityTenantId", "awsAccessKeyID", "awsSecretAccessKey"),
    *("bearerToken", "username", "password", "ca", "cert", "key", "gcpServiceAccountName"),
)
"""By which right it is reached."""


@dataclass(frozen=True, slots=True)
class ReadScaledObject:
    """A ScaledObject and what of it cannot be honoured."""

    spec: ScaledObjectSpec
    warnings: tuple[str, ...]


def scaled_object(data: Mapping[str, Any], options: ManifestOptions | None = None) -> ReadScaledObject:
    """Read the ``spec`` of a ScaledObject alone.

    Raises:
        ScenarioError: everything that is wrong with it.
    """
    findings = Findings()
    spec = _spec(Section(data, "spec", findings), "", options or ManifestOptions())
    findings.refuse()
    return ReadScaledObject(spec, tuple(findings.warnings))


def read_scaled_object(document: Section, options: ManifestOptions) -> ScaledObjectSpec:
    """The spec of a ScaledObject; problems and warnings go to the document's findings."""
    version = document.text("apiVersion", "keda.sh/v1alpha1")
    if not version.startswith("keda.sh/"):
        document.problem("apiVersion", f"must be keda.sh/v1alpha1, got {version!r}")
    document.ignore("kind", "status")
    metadata = document.section("metadata") or Section({}, "metadata", document.findings)
    annotations = metadata.section("annotations")
    for key in () if annotations is None else annotations.data:
        if str(key).startswith("autoscaling.keda.sh/"):
            metadata.warn("annotations", f"{key} has no effect here")
    spec = document.section("spec")
    document.finish()
    if spec is None:
        document.problem("spec", "is missing")
        return ScaledObjectSpec()
    return _spec(spec, metadata.text("name"), options)


def _spec(spec: Section, name: str, options: ManifestOptions) -> ScaledObjectSpec:
    spec.ignore("scaleTargetRef")
    written = [_trigger(section, options) for section in spec.sections("triggers")]
    triggers = [trigger for trigger in written if trigger is not None]
    all_read = len(triggers) == len(written)
    for shared in shared_names(triggers):
        spec.problem("triggers", f"several are named {shared!r}")
    if not triggers and not spec.findings.problems:
        spec.problem("triggers", "must have at least one entry")
    least = spec.integer("minReplicaCount", 0, 0)
    most = spec.integer("maxReplicaCount", 100, 1)
    idle = spec.integer("idleReplicaCount", 0, 0) if spec.has("idleReplicaCount") else None
    if most < least:
        spec.problem("maxReplicaCount", f"is below minReplicaCount ({least})")
    if idle is not None and idle >= least:
        spec.problem("idleReplicaCount", f"must be below minReplicaCount ({least}), got {idle}")
    elif idle:
        spec.warn("idleReplicaCount", "KEDA supports only 0 here")
    if least == 0 and triggers and all(isinstance(trigger, ResourceTrigger) for trigger in triggers):
        spec.problem("minReplicaCount", "must be at least 1 with nothing but cpu and memory triggers")
    fallback = spec.section("fallback")
    advanced = spec.section("advanced")
    behavior, modifiers = (None, None) if advanced is None else _advanced(advanced, triggers, all_read)
    read_fallback = None if fallback is None else _fallback(fallback)
    if read_fallback is not None and read_fallback.behavior == "scalingModifiers" and modifiers is None:
        spec.problem("fallback", "behavior: scalingModifiers needs advanced.scalingModifiers.formula")
    times = {
        "polling_interval_s": spec.number("pollingInterval", 30.0, 1),
        "cooldown_s": spec.number("cooldownPeriod", 300.0, 0),
        "initial_cooldown_s": spec.number("initialCooldownPeriod", 0.0, 0),
    }
    if least >= 1 and idle is None and spec.has("cooldownPeriod"):
        spec.warn(
            "cooldownPeriod",
            f"has no effect while minReplicaCount is {least}: it only delays the way to zero",
        )
    spec.finish()
    if spec.findings.problems:
        return ScaledObjectSpec()
    keys = ScaledObjectKeys(
        min_replicas=least,
        max_replicas=most,
        idle_replicas=idle,
        fallback=read_fallback,
        behavior=behavior,
        **times,
    )
    return ScaledObjectSpec(tuple(triggers), keys, modifiers, name)


def _fallback(section: Section) -> FallbackSpec:
    for key in ("failureThreshold", "replicas"):
        if not section.has(key):
            section.problem(key, "is missing")
    behavior: Any = section.text("behavior", "static", FALLBACK_BEHAVIORS)
    found = FallbackSpec(
        failure_threshold=section.integer("failureThreshold", 0, 0),
        replicas=section.integer("replicas", 0, 0),
        behavior=behavior,
    )
    section.finish()
    return found


def _advanced(
    section: Section, triggers: list[Trigger], all_read: bool
) -> tuple[BehaviorSpec | None, Modifiers | None]:
    section.ignore("restoreToOriginalReplicaCount")
    behavior = modifiers = None
    config = section.section("horizontalPodAutoscalerConfig")
    if config is not None:
        config.ignore("name")
        inner = config.section("behavior")
        behavior = None if inner is None else read_behavior(inner)
        config.finish()
    scaling = section.section("scalingModifiers")
    if scaling is not None and scaling.data:
        modifiers = _modifiers(scaling, triggers, all_read)
    section.finish()
    return behavior, modifiers


def _modifiers(section: Section, triggers: list[Trigger], all_read: bool) -> Modifiers | None:
    text = section.required("formula")
    target = section.milli("target")
    activation = _activation(section, "activationTarget")
    metric_type = section.text("metricType", "AverageValue", ("AverageValue", "Value"))
    section.finish()
    if not text:
        return None
    try:
        formula = Formula(text)
    except ValueError as error:
        section.problem("formula", str(error))
        return None
    for problem in misread_names(formula, triggers) if all_read else ():
        section.problem("formula", problem)
    return None if target is None else Modifiers(formula, target, activation, metric_type)


# ---------------------------------------------------------------- triggers


def _trigger(section: Section, options: ManifestOptions) -> Trigger | None:
    kind = section.required("type")
    name = section.text("name")
    metric_type = section.text("metricType", "", ("AverageValue", "Value", "Utilization"))
    cached = section.boolean("useCachedMetrics", False)
    section.ignore("authenticationRef")
    metadata = section.section("metadata") or Section({}, section.at("metadata"), section.findings)
    section.finish()
    if kind in ("cpu", "memory"):
        return _resource(metadata, kind, name, metric_type, options)
    if metric_type == "Utilization":
        section.problem("metricType", "Utilization is only for cpu and memory triggers")
        return None
    if kind == "prometheus":
        return _prometheus(metadata, name, metric_type or "AverageValue", cached, options)
    if kind == "cron":
        if metric_type == "Value":
            section.problem("metricType", "of a cron trigger must be AverageValue")
        return _cron(metadata, name, cached, options)
    if kind:
        section.problem(
            "type",
            f"there is no counterpart of the trigger {kind!r}, only of prometheus, cron, cpu and memory",
        )
    return None


def _prometheus(
    metadata: Section, name: str, metric_type: str, cached: bool, options: ManifestOptions
) -> MetricTrigger | None:
    metadata.ignore(*_CONNECTION, *_AUTHENTICATION)
    found = _query(metadata, name, options)
    threshold = metadata.milli("threshold")
    activation = _activation(metadata, "activationThreshold")
    ignore_null = metadata.boolean("ignoreNullValues", True, quoted=True)
    metadata.ignore_rest("KEDA ignores it, too")
    if found is None or threshold is None:
        return None
    return MetricTrigger(
        found.query,
        threshold,
        activation,
        metric_type,
        name,
        ignore_null or found.or_zero,
        cached,
        one_series=not found.per_worker,
    )


def _query(metadata: Section, name: str, options: ManifestOptions) -> Mapped | None:
    """What is asked."""
    if metadata.has("metric"):
        own = _own_query(metadata)
        return None if own is None else Mapped(own)
    text = metadata.required("query").strip()
    if not text:
        return None
    mapped = options.mapped(text) or (options.mapped(name) if name else None)
    if mapped is not None:
        return Mapped(mapped, or_zero=ends_in_zero(text))
    try:
        found = parse_promql(text)
    except ValueError as error:
        line = map_line_of_query(text, name)
        advice = f"say what the query stands for beside the manifest: {line}" if line else NOTHING_FITS
        metadata.problem("query", f"{error}; {advice}")
        return None
    for note in found.notes:
        metadata.warn("query", note)
    if found.per_worker:
        metadata.warn(
            "query",
            f"gives one series a worker, and KEDA takes only one: with several workers the trigger fails; "
            f"{_one_series(found.query)}",
        )
    return found


def _one_series(query: MetricQuery) -> str:
    """How to make one series of a query that gives one a worker."""
    if query.percent is not None:
        return "put sum by (le) (...) around the rate inside histogram_quantile()"
    if query.over == "mean" or query.spec.kind is Kind.RATIO:
        return "put sum(...) around both sides of the division"
    return "wrap it in sum(...)"


def _own_query(metadata: Section) -> MetricQuery | None:
    """A trigger that says ``metric``, ``reduce``, ``over`` and ``window_s`` in place of a query."""
    metadata.ignore("query", why="metric is given, so the query is not read")
    try:
        return MetricQuery(
            metadata.text("metric"),
            metadata.text("over") or None,
            metadata.text("reduce") or None,
            metadata.number("window_s", 0.0, quoted=True) or None,
        )
    except ValueError as error:
        metadata.problem("metric", str(error))
        return None


def _cron(metadata: Section, name: str, cached: bool, options: ManifestOptions) -> CronTrigger | None:
    start, end, zone = (metadata.required(key) for key in ("start", "end", "timezone"))
    if not metadata.has("desiredReplicas"):
        metadata.problem("desiredReplicas", "is missing")
    desired = metadata.integer("desiredReplicas", 1, 1, quoted=True)
    metadata.ignore_rest("KEDA ignores it, too")
    if not (start and end and zone):
        return None
    if start == end:
        metadata.problem("end", "is the same as start: the window would never be open")
        return None
    checks: tuple[tuple[str, str, Callable[[str], object]], ...] = (
        ("timezone", zone, time_zone),
        ("start", start, check_expression),
        ("end", end, check_expression),
    )
    found = len(metadata.findings.problems)
    for key, value, check in checks:
        try:
            check(value)
        except ValueError as error:
            metadata.problem(key, f"{error}, got {shown(value)}")
        except ImportError as error:
            metadata.problem(key, str(error))
    if len(metadata.findings.problems) > found:
        return None
    window = CronWindow(start, end, zone, options.start_of_run)
    return CronTrigger(window, desired, name, use_cached=cached)


def _resource(
    metadata: Section, kind: str, name: str, metric_type: str, options: ManifestOptions
) -> ResourceTrigger | None:
    metadata.ignore("containerName", why="containers are not told apart; the whole worker counts")
    target_type = metric_type or metadata.text("type", "Utilization", ("Utilization", "AverageValue"))
    metadata.ignore("type")
    if target_type == "Value":
        metadata.problem("", f"a {kind} trigger has the metricType Utilization or AverageValue")
        return None
    target = (
        metadata.integer("value", 0, 1, quoted=True)
        if target_type == "Utilization"
        else metadata.milli("value")
    )
    metadata.ignore_rest("KEDA ignores it, too")
    try:
        query = options.resource(kind)
    except ValueError as error:
        metadata.problem("", str(error))
        return None
    return ResourceTrigger(HpaMetric("Resource", target_type, target, query, kind), name) if target else None


def _activation(section: Section, key: str) -> float:
    if not section.has(key):
        return 0.0
    try:
        return float(parse_quantity(section.get(key)))
    except ValueError as error:
        section.problem(key, str(error))
        return 0.0
