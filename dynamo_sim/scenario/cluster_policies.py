"""Policies that a cluster runs: by their manifests, or by keys of our own (spec 10, 2 to 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from dynamo_sim.scenario.base import Count, NonNegative, Path, PositiveCount, Problems, Spec
from dynamo_sim.scenario.files import existing_path
from dynamo_sim.scenario.policy_parts import (
    AnyMetric,
    CronExpression,
    Metric,
    Moment,
    PolicySpec,
    Positive,
    TimeZone,
)


def checked_manifest(value: Any, info: ValidationInfo) -> Any:
    """A path made absolute, or the text or the documents of a manifest as they are.

    Raises:
        ValueError: neither of them.
    """
    if value is None:
        return None
    if isinstance(value, str) and not is_inline(value):
        return existing_path(value, info.context)
    if isinstance(value, str | Mapping) and value:
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
        return list(value)
    raise ValueError("must be a path, the text of a manifest, or its documents")


def is_inline(text: str) -> bool:
    """Whether a text is a manifest itself and not the path of one."""
    return "\n" in text.strip() or text.lstrip().startswith("{")


ManifestSource = Annotated[
    Any,
    BeforeValidator(checked_manifest),
    Field(json_schema_extra={"type": ["string", "object", "array", "null"], "items": {"type": "object"}}),
]


class ManifestOptions(Spec):
    """What a manifest does not say: flags of the controllers, and what its metrics stand for."""

    sync_period_s: Positive = 15.0
    """HPA: time between two looks."""

    downscale_stabilization_s: NonNegative = 300.0
    """HPA: window in which the highest recommendation counts, where the manifest has none."""

    tolerance: NonNegative = 0.1
    """HPA: how far a ratio may be from 1 without a change."""

    cpu_initialization_period_s: NonNegative = 300.0
    """HPA: how long the cpu of a young worker is looked at with care."""

    initial_readiness_delay_s: NonNegative = 30.0
    """HPA: how soon after its start an unready worker is taken to have never been ready."""

    scale_to_zero: bool = False
    """HPA: whether minReplicas may be 0."""

    metric_map: dict[str, AnyMetric] = Field(default_factory=dict)
    """What stands for a metric's name, a trigger's name or a whole PromQL query."""

    resource_map: dict[Literal["cpu", "memory"], AnyMetric] = Field(default_factory=dict)
    """What stands for cpu or memory, as {cpu: busy}."""

    start_of_run: Moment = "2025-01-06T00:00:00+00:00"
    """The wall clock at virtual time 0, for cron; UTC unless it says otherwise."""


class FromManifest(ManifestOptions, PolicySpec):
    """A policy that can be read from a manifest instead of its own keys."""

    manifest: ManifestSource = None
    """A path, the text of one or several documents, or the documents."""

    name: str | None = None
    """Which autoscaler of the manifest, where there are several."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        own = self._own_keys()
        if self.manifest is not None:
            for key in own:
                field = type(self).model_fields[key]
                if getattr(self, key) != field.get_default(call_default_factory=True):
                    yield (key,), "is not possible with a manifest, which says it itself"
        else:
            for key in ("name", "metric_map", "resource_map"):
                if getattr(self, key):
                    yield (key,), "is possible only with a manifest"

    def _own_keys(self) -> list[str]:
        shared = {"kind", *FromManifest.model_fields}
        return [key for key in type(self).model_fields if key not in shared]


class ManifestScaling(FromManifest):
    """A manifest: HorizontalPodAutoscaler, ScaledObject or Knative Service, as it is."""

    kind_is_needed = False

    kind: Literal["manifest"] = "manifest"
    """Kind of policy; may be left out beside `manifest`."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if self.manifest is None:
            yield ("manifest",), "missing, and has no default"


class RuleSpec(Spec):
    """At most so much change in a period."""

    type: Literal["Pods", "Percent"]
    """Workers, or percent of them."""

    value: PositiveCount
    """How many."""

    period_s: Annotated[float, Field(gt=0, le=1800)]
    """In what time."""


class DirectionSpec(Spec):
    """How fast to scale in one direction; what is left out has the defaults of Kubernetes."""

    rules: tuple[RuleSpec, ...] | None = Field(default=None, strict=False, json_schema_extra={"minItems": 1})
    """Limits of change; null = the defaults."""

    select: Literal["Max", "Min", "Disabled"] = "Max"
    """Which rule counts."""

    stabilization_window_s: Annotated[float, Field(ge=0, le=3600)] | None = None
    """Window of recommendations; null = the default."""

    tolerance: NonNegative | None = None
    """How far a ratio may be from 1; null = that of the controller."""

    @model_validator(mode="after")
    def _check_rules(self) -> DirectionSpec:
        if self.rules == ():
            raise Problems([(("rules",), "must have at least 1 item; leave it out for the defaults")])
        return self


class BehaviorSpec(Spec):
    """How fast to scale; a section without keys differs from none, as in Kubernetes."""

    scale_up: DirectionSpec = DirectionSpec()
    """Upwards."""

    scale_down: DirectionSpec = DirectionSpec()
    """Downwards."""


class HpaMetricSpec(Metric):
    """A metric of an HPA and its target."""

    source: Literal["Pods", "Object", "External"] = "Pods"
    """A sample a worker (Pods), or one number (Object, External; the sum where `reduce` is left out)."""

    target_type: Literal["AverageValue", "Value"] = "AverageValue"
    """Whether the target is for one worker or for the whole fleet."""

    target: Positive
    """The target."""

    name: str = ""
    """How records call it."""

    @model_validator(mode="after")
    def _check_target(self) -> HpaMetricSpec:
        if self.source == "Pods" and self.target_type == "Value":
            raise Problems([(("target_type",), "found 'Value'; must be 'AverageValue' for source 'Pods'")])
        return self


class HpaScaling(FromManifest):
    """HorizontalPodAutoscaler autoscaling/v2, by a manifest or by keys."""

    kind: Literal["hpa"] = "hpa"
    """Kind of policy."""

    min_replicas: Count = 1
    """Smallest fleet it asks for."""

    max_replicas: PositiveCount | None = None
    """Largest; needed without a manifest."""

    metrics: tuple[HpaMetricSpec, ...] = Field(default=(), strict=False)
    """Its metrics; at least one without a manifest."""

    behavior: BehaviorSpec | None = None
    """How fast it scales; null = none, whose rules differ from an empty one."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        yield from super()._conflicts()
        if self.manifest is not None:
            return
        if self.max_replicas is None:
            yield ("max_replicas",), "missing; an hpa needs it, or a manifest"
        elif self.max_replicas < self.min_replicas:
            yield (
                ("max_replicas",),
                f"found {self.max_replicas}; must be at least min_replicas, {self.min_replicas}",
            )
        if not self.metrics:
            yield ("metrics",), "missing; an hpa needs at least one, or a manifest"
        if self.min_replicas == 0:
            if not self.scale_to_zero:
                yield ("min_replicas",), "found 0; needs scale_to_zero: true"
            elif all(metric.source == "Pods" for metric in self.metrics):
                yield ("min_replicas",), "found 0; needs a metric of source Object or External"


class MetricTriggerSpec(Metric):
    """A trigger on one number of the fleet."""

    kind: Literal["metric"]
    """Kind of trigger."""

    threshold: Positive
    """Its target."""

    activation: float = 0.0
    """Active strictly above it."""

    metric_type: Literal["AverageValue", "Value"] = "AverageValue"
    """Whether the threshold is for one worker or for the whole fleet."""

    name: str = ""
    """For the formula and for messages."""

    ignore_null: bool = True
    """Whether no data counts as 0; else it is an error."""

    use_cached: bool = False
    """Whether the HPA gets the value of the last poll."""


class CronTriggerSpec(Spec):
    """A trigger on the wall clock."""

    kind: Literal["cron"]
    """Kind of trigger."""

    start: CronExpression
    """Cron expression of five fields: when the window opens."""

    end: CronExpression
    """When it closes."""

    timezone: TimeZone = "UTC"
    """IANA name."""

    desired: PositiveCount
    """Workers wanted while it is open."""

    name: str = ""
    """For the formula and for messages."""

    use_cached: bool = False
    """Whether the HPA gets the value of the last poll."""


TriggerSpec = Annotated[MetricTriggerSpec | CronTriggerSpec, Field(discriminator="kind")]


class FallbackSpec(Spec):
    """What replaces a metric that keeps failing."""

    failure_threshold: Count
    """Failures after which it does."""

    replicas: Count
    """Workers then."""

    behavior: Literal[
        "static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower", "scalingModifiers"
    ] = "static"
    """How the current number counts; scalingModifiers: the formula gets nil for a failed trigger."""


class ModifiersSpec(Spec):
    """One composite metric instead of those of the triggers."""

    formula: str
    """Over the names of the triggers."""

    target: Positive
    """Its target."""

    activation: float = 0.0
    """Active strictly above it."""

    metric_type: Literal["AverageValue", "Value"] = "AverageValue"
    """Whether the target is for one worker or for the whole fleet."""


class KedaScaling(FromManifest):
    """KEDA ScaledObject, by a manifest or by keys."""

    kind: Literal["keda"] = "keda"
    """Kind of policy."""

    triggers: tuple[TriggerSpec, ...] = Field(default=(), strict=False)
    """Its triggers; at least one without a manifest."""

    min_replicas: Count = 0
    """Smallest fleet it asks for."""

    max_replicas: PositiveCount = 100
    """Largest."""

    idle_replicas: Count | None = None
    """Fleet without an active trigger; must be below min_replicas."""

    polling_interval_s: Positive = 30.0
    """Time between two looks of the operator."""

    cooldown_s: NonNegative = 300.0
    """How long no trigger must have been active before the fleet goes to zero."""

    initial_cooldown_s: NonNegative = 0.0
    """The same from the start of the run."""

    fallback: FallbackSpec | None = None
    """What replaces a metric that keeps failing."""

    behavior: BehaviorSpec | None = None
    """Of the HPA it makes."""

    modifiers: ModifiersSpec | None = None
    """One composite metric."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        yield from super()._conflicts()
        if self.manifest is not None:
            return
        if not self.triggers:
            yield ("triggers",), "missing; keda needs at least one, or a manifest"
        if self.max_replicas < self.min_replicas:
            yield (
                ("max_replicas",),
                f"found {self.max_replicas}; must be at least min_replicas, {self.min_replicas}",
            )
        by_formula = self.fallback is not None and self.fallback.behavior == "scalingModifiers"
        if by_formula and self.modifiers is None:
            yield ("fallback", "behavior"), "found 'scalingModifiers'; needs modifiers with a formula"
        if self.idle_replicas is not None and self.idle_replicas >= self.min_replicas:
            yield (
                ("idle_replicas",),
                f"found {self.idle_replicas}; must be below min_replicas, {self.min_replicas}",
            )


class KpaScaling(FromManifest):
    """Knative's autoscaler, by a manifest or by keys."""

    kind: Literal["kpa"] = "kpa"
    """Kind of policy."""

    metric: Literal["concurrency", "rps"] = "concurrency"
    """What is counted."""

    target: Positive | None = None
    """For one worker; null = container_concurrency, or the default of the cluster."""

    container_concurrency: NonNegative = 0.0
    """Most requests a worker takes at once; 0 = unlimited. Caps the target only."""

    concurrency_target_default: Positive = 100.0
    """Target without any other, for concurrency."""

    rps_target_default: Positive = 200.0
    """Target without any other, for rps."""

    utilization: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the target a worker is meant to have; null = that of the cluster."""

    concurrency_utilization: Annotated[float, Field(gt=0, le=1)] = 0.7
    """That of the cluster for concurrency; for rps it is always 0.7."""

    window_s: Annotated[float, Field(ge=1)] = 60.0
    """The stable window."""

    panic_window_percentage: Annotated[float, Field(ge=1, le=100)] = 10.0
    """The panic window in percent of the stable one."""

    panic_threshold_percentage: Annotated[float, Field(ge=110, le=1000)] = 200.0
    """Panic begins at this percentage of what the ready workers are meant to have."""

    max_scale_up_rate: Annotated[float, Field(gt=1)] = 1000.0
    """Most growth at one tick, as a factor."""

    max_scale_down_rate: Annotated[float, Field(gt=1)] = 2.0
    """Most shrinkage at one tick, as a factor."""

    min_scale: Count = 0
    """Smallest fleet it asks for."""

    max_scale: Count = 0
    """Largest; 0 = no bound."""

    initial_scale: Count = 1
    """Workers a new revision is meant to reach once."""

    activation_scale: PositiveCount = 1
    """Workers it wakes up with."""

    scale_down_delay_s: NonNegative = 0.0
    """Window in which the highest wish counts."""

    scale_to_zero_grace_period_s: NonNegative = 30.0
    """How long the last worker stays after the way to zero is free."""

    scale_to_zero_pod_retention_period_s: NonNegative = 0.0
    """How long the last worker stays at least."""

    enable_scale_to_zero: bool = True
    """Whether the fleet may go to zero."""

    target_burst_capacity: Annotated[float, Field(ge=-1)] = 211.0
    """Spare room below which requests wait in front of the fleet; -1 = always."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        yield from super()._conflicts()
        if 0 < self.max_scale < self.min_scale:
            yield ("max_scale",), f"found {self.max_scale}; must be at least min_scale, {self.min_scale}"
