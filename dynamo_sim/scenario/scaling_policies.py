"""The `policy` part of an autoscaler: who decides how many workers there are (spec 10, 2 to 6)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from dynamo_sim.scenario.base import Count, Fraction, NonNegative, Path, PositiveCount, Problems, Spec
from dynamo_sim.scenario.files import existing_path

Positive = Annotated[float, Field(gt=0)]

GaugeName = Literal[
    "in_flight",
    "running",
    "waiting",
    "kv_usage",
    "active_decode_blocks",
    "active_prefill_tokens",
    "router_queue",
    "active_workers",
]
CounterName = Literal[
    "requests_started",
    "requests_finished",
    "prompt_tokens",
    "generated_tokens",
    "preemptions",
    "prefix_hits",
    "prefix_queries",
    "busy_s",
    "in_flight_s",
    "router_queue_s",
]
RatioName = Literal["busy", "prefix_hit_rate"]
HistogramName = Literal["ttft", "itl", "tpot", "e2e", "queue_time"]
MetricName = Literal[GaugeName, CounterName, RatioName, HistogramName]
"""The metrics of `dynamo_sim.autoscaling.catalogue`, by their kinds."""

_OVER_BY_KIND: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("gauge", GaugeName, ("last", "avg")),
    ("counter", CounterName, ("rate", "increase")),
    ("ratio", RatioName, ("rate",)),
    ("histogram", HistogramName, ("mean", "rate")),
)

_PERCENTILE = re.compile(r"p(\d{1,2}(\.\d+)?|100)")


def _checked_moment(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("must be a date and time such as 2025-01-06T08:00:00+00:00") from None
    return text


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


def _checked_config(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        return existing_path(value, info.context)
    if isinstance(value, Mapping):
        return value
    raise ValueError("must be a section of keys, or the path of a file with one")


ManifestSource = Annotated[
    Any,
    BeforeValidator(checked_manifest),
    Field(json_schema_extra={"type": ["string", "object", "array", "null"], "items": {"type": "object"}}),
]
Moment = Annotated[str, AfterValidator(_checked_moment)]


# ---------------------------------------------------------------- metrics


class Metric(Spec):
    """A question to the metrics: which one, over what time, put together how."""

    metric: MetricName
    """The metric; times are in ms."""

    over: str | None = None
    """Within a worker's window: last, avg (gauges); rate, increase (counters); mean, p95 ... (latencies)."""

    reduce: Literal["sum", "avg", "max", "min", "merge", "avg_over_time"] | None = None
    """Over the workers; merge pools the observations of latencies. null = merge for those, else avg."""

    window_s: Positive | None = None
    """Length of the window; null = that of the metrics section."""

    scale: float = 1.0
    """Every value is multiplied by it."""

    @model_validator(mode="after")
    def _check_query(self) -> Metric:
        kind, _, over = next(entry for entry in _OVER_BY_KIND if self.metric in get_args(entry[1]))
        pooled = kind in ("histogram", "ratio")
        found: list[tuple[Path, str]] = []
        percentile = kind == "histogram" and self.over is not None and _PERCENTILE.fullmatch(self.over)
        if self.over is not None and self.over not in over and not percentile:
            words = [*over, *(("a percentile such as p95",) if kind == "histogram" else ())]
            found.append(
                (("over",), f"found {self.over!r}; must be {' or '.join(words)} for {self.metric}, a {kind}")
            )
        if self.reduce == "merge" and not pooled:
            found.append((("reduce",), f"found 'merge'; is not possible for {self.metric}, a {kind}"))
        if self.reduce == "avg_over_time" and kind != "gauge":
            found.append((("reduce",), f"found 'avg_over_time'; is not possible for {self.metric}, a {kind}"))
        if found:
            raise Problems(found)
        return self


AnyMetric = Annotated[
    Metric, BeforeValidator(lambda value: {"metric": value} if isinstance(value, str) else value)
]
"""A metric, or just its name."""


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


# ---------------------------------------------------------------- policies


class PolicySpec(Spec):
    """What all policies have in common."""

    @model_validator(mode="after")
    def _check_policy(self) -> PolicySpec:
        found = list(self._conflicts())
        if found:
            raise Problems(found)
        return self

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        """What the keys of this policy say against each other."""
        return iter(())


class FixedScaling(PolicySpec):
    """Always the same number of workers."""

    kind: Literal["fixed"]
    """Kind of policy."""

    count: Count
    """Workers wanted."""


class TargetAt(Spec):
    """A target from a time on."""

    t: NonNegative
    """When, in ms of virtual time."""

    target: Count
    """Workers wanted from then on."""


class CronEntry(Spec):
    """A target while a window of the wall clock is open."""

    start: str
    """Cron expression of five fields: when the window opens."""

    end: str
    """When it closes."""

    target: Count
    """Workers wanted while it is open."""

    timezone: str = "UTC"
    """IANA name."""


class ScheduleScaling(PolicySpec):
    """Targets by the clock; where several hold, the largest counts."""

    kind: Literal["schedule"]
    """Kind of policy."""

    at_ms: tuple[TargetAt, ...] = Field(default=(), strict=False)
    """Targets at times of their own, applied exactly then."""

    cron: tuple[CronEntry, ...] = Field(default=(), strict=False)
    """Targets by windows of the wall clock."""

    default: Count | None = None
    """Target where nothing else holds; null = no change."""

    start_of_run: Moment = "2025-01-06T00:00:00+00:00"
    """The wall clock at virtual time 0; UTC unless it says otherwise."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if not self.at_ms and not self.cron and self.default is None:
            yield ("at_ms",), "missing; a schedule needs at_ms, cron or default"


class TargetTrackingScaling(Metric, PolicySpec):
    """Keeps a metric at a target for each worker."""

    kind: Literal["target_tracking"]
    """Kind of policy."""

    target: Positive
    """Of the metric, for one worker."""

    target_kind: Literal["average", "total"] = "average"
    """Whether the metric is a mean over the workers or a sum of all."""

    margin: Fraction = 0.1
    """How far, as a share, the metric may lie below its target without a scale-in."""

    scale_out_cooldown_s: NonNegative = 0.0
    """Least time between two scale-outs."""

    scale_in_cooldown_s: NonNegative = 300.0
    """Least time from any change to a scale-in."""


class StepSpec(Spec):
    """An adjustment while the distance from the threshold lies between two bounds."""

    lower: float | None = None
    """Smallest distance; null = open."""

    upper: float | None = None
    """Largest distance; null = open."""

    adjustment: float
    """Workers, or percent of them."""

    @model_validator(mode="after")
    def _check_bounds(self) -> StepSpec:
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise Problems(
                [(("upper",), f"found {self.upper:g}; must be above lower, which is {self.lower:g}")]
            )
        return self


class AlarmSpec(Metric):
    """An alarm and its steps."""

    threshold: float
    """Breached at or above it (up), at or below it (down)."""

    direction: Literal["up", "down"]
    """Which way a breach scales."""

    steps: tuple[StepSpec, ...] = Field(strict=False, min_length=1)
    """What to do, by the distance from the threshold."""

    adjustment_type: Literal["ChangeInCapacity", "ExactCapacity", "PercentChangeInCapacity"] = (
        "ChangeInCapacity"
    )
    """What an adjustment is."""

    min_adjustment_magnitude: Count = 0
    """Least change of a percentage, in workers."""

    evaluation_periods: PositiveCount = 1
    """How many of the last looks count."""

    datapoints: PositiveCount | None = None
    """How many of them must breach; null = all."""

    @model_validator(mode="after")
    def _check_alarm(self) -> AlarmSpec:
        found: list[tuple[Path, str]] = []
        if self.datapoints is not None and self.datapoints > self.evaluation_periods:
            found.append(
                (
                    ("datapoints",),
                    f"found {self.datapoints}; must be at most evaluation_periods, {self.evaluation_periods}",
                )
            )
        if self.adjustment_type != "PercentChangeInCapacity":
            for position, step in enumerate(self.steps):
                if not step.adjustment.is_integer():
                    found.append(
                        (
                            ("steps", position, "adjustment"),
                            f"found {step.adjustment:g}; must be a whole number of workers",
                        )
                    )
        if found:
            raise Problems(found)
        return self


class StepScaling(PolicySpec):
    """Alarms with steps, as AWS step scaling has them."""

    kind: Literal["step_scaling"]
    """Kind of policy."""

    alarms: tuple[AlarmSpec, ...] = Field(strict=False, min_length=1)
    """The alarms; the largest wish wins."""

    warmup_s: NonNegative = 0.0
    """How long the workers of a step warm up; nothing is scaled in meanwhile."""


class QueueProportionalScaling(PolicySpec):
    """As many workers as the queue needs."""

    kind: Literal["queue_proportional"]
    """Kind of policy."""

    per_worker: Positive
    """Requests one worker is to have."""

    include_in_flight: Annotated[
        Fraction,
        BeforeValidator(lambda value: float(value) if isinstance(value, bool) else value),
        Field(json_schema_extra={"type": ["number", "boolean"]}),
    ] = 0.0
    """Weight of running requests, from 0 to 1; false and true will do."""

    slack: Count = 0
    """Workers on top."""

    hold_s: NonNegative = 0.0
    """How long a smaller wish must have held."""


class SlaScaling(PolicySpec):
    """Keeps latency targets by a model of the engine learnt from its passes."""

    kind: Literal["sla"]
    """Kind of policy."""

    ttft_ms: Positive | None = None
    """Target of the time to first token; null = that of the sla section."""

    itl_ms: Positive | None = None
    """Target of the time between tokens; null = that of the sla section."""

    interval_s: Positive = 5.0
    """Time between two looks."""

    throughput_interval_s: Positive = 60.0
    """Time between two plans by traffic."""

    predictor: Literal["constant", "kalman", "holt_winters"] = "constant"
    """Forecast of the traffic of the next interval."""

    sensitivity: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Share of a target that must be kept after a scale-in."""

    mode: Literal["load", "throughput", "both"] = "both"
    """load reacts, throughput plans, both reacts above the plan."""

    min_workers: PositiveCount = 1
    """Smallest fleet it asks for."""

    stale_s: NonNegative = 10.0
    """A worker without a pass for so long counts as idle."""

    max_step: PositiveCount | None = None
    """Most workers added at once; null = no limit."""

    strict: bool = False
    """The rules of the Dynamo planner: one step at a time, snapshots never age, wait for starting workers."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if self.mode != "load" and self.throughput_interval_s < self.interval_s:
            yield (
                ("throughput_interval_s",),
                f"found {self.throughput_interval_s:g}; must be at least interval_s, {self.interval_s:g}",
            )


class DynamoPlannerScaling(PolicySpec):
    """The Dynamo planner itself; needs its package."""

    kind: Literal["dynamo_planner"]
    """Kind of policy."""

    config: Annotated[
        Any,
        BeforeValidator(_checked_config),
        Field(json_schema_extra={"type": ["string", "object"]}),
    ]
    """The planner's configuration, or the path of a JSON or YAML file with it."""


class CustomScaling(PolicySpec):
    """A class of your own with a method `decide(now_s, view, fleet)`."""

    kind: Literal["custom"]
    """Kind of policy."""

    class_: Annotated[str, Field(alias="class", pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")]
    """As module:Class; the module is looked for beside the scenario first."""

    options: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the class."""

    @model_serializer(mode="wrap")
    def _by_written_name(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {"class" if key == "class_" else key: value for key, value in handler(self).items()}


# ---------------------------------------------------------------- controllers of a cluster


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
        elif self.name is not None:
            yield ("name",), "is possible only with a manifest"

    def _own_keys(self) -> list[str]:
        shared = {"kind", *FromManifest.model_fields}
        return [key for key in type(self).model_fields if key not in shared]


class ManifestScaling(FromManifest):
    """A manifest: HorizontalPodAutoscaler, ScaledObject or Knative Service, as it is."""

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

    rules: tuple[RuleSpec, ...] | None = Field(default=None, strict=False, min_length=1)
    """Limits of change; null = the defaults."""

    select: Literal["Max", "Min", "Disabled"] = "Max"
    """Which rule counts."""

    stabilization_window_s: Annotated[float, Field(ge=0, le=3600)] | None = None
    """Window of recommendations; null = the default."""

    tolerance: NonNegative | None = None
    """How far a ratio may be from 1; null = that of the controller."""


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

    kind: Literal["hpa"]
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

    start: str
    """Cron expression of five fields: when the window opens."""

    end: str
    """When it closes."""

    timezone: str = "UTC"
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

    behavior: Literal["static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"] = (
        "static"
    )
    """How the current number counts."""


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

    kind: Literal["keda"]
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
        if self.idle_replicas is not None and self.idle_replicas >= self.min_replicas:
            yield (
                ("idle_replicas",),
                f"found {self.idle_replicas}; must be below min_replicas, {self.min_replicas}",
            )


class KpaScaling(FromManifest):
    """Knative's autoscaler, by a manifest or by keys."""

    kind: Literal["kpa"]
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

    utilization: Annotated[float, Field(gt=0, le=1)] = 0.7
    """Share of the target a worker is meant to have."""

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


# ---------------------------------------------------------------- all of them


def _named_by_its_manifest(value: Any) -> Any:
    """A policy that is only a manifest needs no kind."""
    if isinstance(value, Mapping) and "manifest" in value and "kind" not in value:
        return {**value, "kind": "manifest"}
    return value


FloorPolicy = Annotated[
    TargetTrackingScaling
    | StepScaling
    | QueueProportionalScaling
    | HpaScaling
    | CustomScaling
    | ManifestScaling,
    Field(discriminator="kind"),
    BeforeValidator(_named_by_its_manifest),
]


class PredictiveScaling(Metric, PolicySpec):
    """Scales for the forecast of a metric; never below what a reactive policy wants."""

    kind: Literal["predictive"]
    """Kind of policy."""

    per_worker: Positive
    """How much of the metric, as a total of the fleet, one worker can do."""

    bin_s: Positive
    """Length of a bin of its history."""

    floor_policy: FloorPolicy
    """The reactive policy; it looks whenever this one does."""

    horizon_s: Positive | None = None
    """How far ahead; null = the startup time, in whole bins."""

    method: Literal["holt_winters", "seasonal_naive", "linear"] = "holt_winters"
    """How to forecast; holt_winters needs the extra `predictive`."""

    season_bins: PositiveCount | None = None
    """Length of a season; null = none."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if self.method == "seasonal_naive" and self.season_bins is None:
            yield ("season_bins",), "missing; method 'seasonal_naive' needs it"


ScalingPolicy = Annotated[
    FixedScaling
    | ScheduleScaling
    | TargetTrackingScaling
    | StepScaling
    | QueueProportionalScaling
    | PredictiveScaling
    | HpaScaling
    | KedaScaling
    | KpaScaling
    | SlaScaling
    | DynamoPlannerScaling
    | CustomScaling
    | ManifestScaling,
    Field(discriminator="kind"),
    BeforeValidator(_named_by_its_manifest),
]
"""Add a policy by adding its model here, and how it is built in `dynamo_sim.autoscaling.build`."""
