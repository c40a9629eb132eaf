"""Policies that a cluster runs, by keys of our own (spec 10, 2 to 4); their manifests are in `manifest_keys`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from dynamo_sim.scenario.base import CheckedSpec, Count, NonNegative, Path, PositiveCount, Problems, Spec
from dynamo_sim.scenario.manifest_keys import FromManifest
from dynamo_sim.scenario.policy_parts import CronExpression, MetricSpec, Positive, TimeZone

MAX_RULE_PERIOD_S = 1800
"""Of a rule of a `behavior`; Kubernetes refuses longer ones."""

MAX_STABILIZATION_S = 3600
"""Of a stabilisation window of a `behavior`; Kubernetes refuses longer ones."""

MAX_KNATIVE_WINDOW_S = 86400
"""Of the stable window and of the delay of a scale-in; Knative itself stops at an hour."""

MAX_ENTRIES = 100
"""Metrics or triggers of one policy."""


class RuleSpec(Spec):
    """At most so much change in a period."""

    type: Literal["Pods", "Percent"]
    """Workers, or percent of them."""

    value: PositiveCount
    """How many."""

    period_s: Annotated[float, Field(gt=0, le=MAX_RULE_PERIOD_S)]
    """In what time."""


class DirectionSpec(Spec):
    """How fast to scale in one direction; what is left out has the defaults of Kubernetes."""

    rules: tuple[RuleSpec, ...] | None = Field(default=None, strict=False, json_schema_extra={"minItems": 1})
    """Limits of change; null = the defaults."""

    select: Literal["Max", "Min", "Disabled"] = "Max"
    """Which rule counts."""

    stabilization_window_s: Annotated[float, Field(ge=0, le=MAX_STABILIZATION_S)] | None = None
    """Window of recommendations; null = the default."""

    tolerance: NonNegative | None = None
    """How far a ratio may be from 1; null = that of the controller."""

    @model_validator(mode="after")
    def _check_rules(self) -> DirectionSpec:
        if self.rules == ():
            raise Problems([(("rules",), "must have at least 1 item; leave it out for the defaults")])
        return self

    def over(self, default: DirectionSpec) -> DirectionSpec:
        """Itself, with the values of ``default`` in place of what is left out."""
        missing = [key for key in ("rules", "stabilization_window_s") if getattr(self, key) is None]
        return self.model_copy(update={key: getattr(default, key) for key in missing})


DEFAULT_UP = DirectionSpec(
    rules=(
        RuleSpec(type="Pods", value=4, period_s=15.0),
        RuleSpec(type="Percent", value=100, period_s=15.0),
    ),
    stabilization_window_s=0.0,
)
"""Scale-up with a `behavior` that does not say otherwise (spec 10, 2.7)."""

DEFAULT_DOWN = DirectionSpec(rules=(RuleSpec(type="Percent", value=100, period_s=15.0),))
"""Scale-down with a `behavior` that does not say otherwise; its window is that of the controller."""


class BehaviorSpec(Spec):
    """How fast to scale; a section without keys differs from none, as in Kubernetes."""

    scale_up: DirectionSpec = DirectionSpec()
    """Upwards."""

    scale_down: DirectionSpec = DirectionSpec()
    """Downwards."""

    @cached_property
    def up(self) -> DirectionSpec:
        """Scale-up with the defaults of Kubernetes in place of what is left out."""
        return self.scale_up.over(DEFAULT_UP)

    @cached_property
    def down(self) -> DirectionSpec:
        """The same for scale-down."""
        return self.scale_down.over(DEFAULT_DOWN)


class HpaMetricSpec(MetricSpec):
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

    metrics: tuple[HpaMetricSpec, ...] = Field(default=(), strict=False, max_length=MAX_ENTRIES)
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


class MetricTriggerSpec(MetricSpec):
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
    """Workers asked for while it is open."""

    name: str = ""
    """For the formula and for messages."""

    use_cached: bool = False
    """Whether the HPA gets the value of the last poll."""


TriggerSpec = Annotated[MetricTriggerSpec | CronTriggerSpec, Field(discriminator="kind")]


FallbackBehavior = Literal[
    "static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower", "scalingModifiers"
]

FALLBACK_BEHAVIORS: tuple[str, ...] = get_args(FallbackBehavior)


class FallbackSpec(Spec):
    """What replaces a metric that keeps failing."""

    failure_threshold: Count
    """Failures after which it does."""

    replicas: Count
    """Workers then."""

    behavior: FallbackBehavior = "static"
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


class ScaledObjectKeys(CheckedSpec):
    """What a ScaledObject says beside its triggers and their formula."""

    min_replicas: Count = 0
    """Smallest fleet it asks for."""

    max_replicas: PositiveCount = 100
    """Largest."""

    idle_replicas: Count | None = None
    """Fleet without an active trigger; must be below min_replicas."""

    polling_interval_s: Positive = 30.0
    """Time between two polls of the operator."""

    cooldown_s: NonNegative = 300.0
    """How long no trigger must have been active before the fleet goes to zero."""

    initial_cooldown_s: NonNegative = 0.0
    """The same from the start of the run."""

    fallback: FallbackSpec | None = None
    """What replaces a metric that keeps failing."""

    behavior: BehaviorSpec | None = None
    """Of the HPA it makes."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if self.max_replicas < self.min_replicas:
            yield (
                ("max_replicas",),
                f"found {self.max_replicas}; must be at least min_replicas, {self.min_replicas}",
            )
        if self.idle_replicas is not None and self.idle_replicas >= self.min_replicas:
            yield (
                ("idle_replicas",),
                f"found {self.idle_replicas}; must be below min_replicas, {self.min_replicas}",
            )


class KedaScaling(FromManifest, ScaledObjectKeys):
    """KEDA ScaledObject, by a manifest or by keys."""

    kind: Literal["keda"] = "keda"
    """Kind of policy."""

    triggers: tuple[TriggerSpec, ...] = Field(default=(), strict=False, max_length=MAX_ENTRIES)
    """Its triggers; at least one without a manifest."""

    modifiers: ModifiersSpec | None = None
    """One composite metric."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        yield from FromManifest._conflicts(self)
        if self.manifest is not None:
            return
        if not self.triggers:
            yield ("triggers",), "missing; keda needs at least one, or a manifest"
        yield from ScaledObjectKeys._conflicts(self)
        by_formula = self.fallback is not None and self.fallback.behavior == "scalingModifiers"
        if by_formula and self.modifiers is None:
            yield ("fallback", "behavior"), "found 'scalingModifiers'; needs modifiers with a formula"


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

    window_s: Annotated[float, Field(ge=1, le=MAX_KNATIVE_WINDOW_S)] = 60.0
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

    scale_down_delay_s: Annotated[float, Field(ge=0, le=MAX_KNATIVE_WINDOW_S)] = 0.0
    """Window in which the highest desired number counts."""

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
            yield (
                ("max_scale",),
                f"found {self.max_scale}; must be at least min_scale, {self.min_scale}, or 0 for no bound",
            )
        if -1 < self.target_burst_capacity < 0:
            yield (
                ("target_burst_capacity",),
                f"found {self.target_burst_capacity:g}; must be -1 or at least 0",
            )
