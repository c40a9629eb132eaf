"""The `policy` part of an autoscaler: who decides how many workers there are (spec 10, 5 and 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from dynamo_sim.limits import MAX_WORKERS
from dynamo_sim.scenario.base import (
    Count,
    Fraction,
    NonNegative,
    Path,
    PositiveCount,
    Problems,
    Spec,
    repeats,
)
from dynamo_sim.scenario.cluster_policies import HpaScaling, KedaScaling, KpaScaling
from dynamo_sim.scenario.files import existing_path
from dynamo_sim.scenario.manifest_keys import ManifestScaling
from dynamo_sim.scenario.policy_parts import (
    CronExpression,
    MetricSpec,
    Moment,
    PerWorker,
    PolicySpec,
    Positive,
    TimeZone,
    Workers,
)


def _checked_config(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        return existing_path(value, info.context)
    if isinstance(value, Mapping):
        return value
    raise ValueError("must be a section of keys, or the path of a file with one")


def is_class_name(text: str) -> bool:
    """Whether it is like ``module:Class``."""
    module, _, attribute = text.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))


def _checked_class(text: str) -> str:
    if not is_class_name(text):
        raise ValueError("must be module:Class, like my_policy:Halfway for the class Halfway of my_policy.py")
    return text


class FixedScaling(PolicySpec):
    """Always the same number of workers."""

    kind: Literal["fixed"] = "fixed"
    """Kind of policy."""

    count: Workers
    """Workers wanted."""


class TargetAt(Spec):
    """A target from a time on."""

    t: NonNegative
    """When, in ms of virtual time."""

    target: Workers
    """Workers wanted from then on."""


class CronEntry(Spec):
    """A target while a window of the wall clock is open."""

    start: CronExpression
    """Cron expression of five fields: when the window opens."""

    end: CronExpression
    """When it closes."""

    target: Workers
    """Workers wanted while it is open."""

    timezone: TimeZone = "UTC"
    """IANA name."""


class ScheduleScaling(PolicySpec):
    """Targets by the clock; where several hold, the largest counts."""

    kind: Literal["schedule"] = "schedule"
    """Kind of policy."""

    at_ms: tuple[TargetAt, ...] = Field(default=(), strict=False)
    """Targets at times of their own, applied exactly then."""

    cron: tuple[CronEntry, ...] = Field(default=(), strict=False)
    """Targets by windows of the wall clock."""

    default: Workers | None = None
    """Target where nothing else holds; null = no change."""

    start_of_run: Moment = "2025-01-06T00:00:00+00:00"
    """The wall clock at virtual time 0; UTC unless it says otherwise."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if not self.at_ms and not self.cron and self.default is None:
            yield ("at_ms",), "missing; a schedule needs at_ms, cron or default"
        for position, first in repeats(step.t for step in self.at_ms):
            earlier = self.at_ms[first]
            yield (
                ("at_ms", position, "t"),
                f"found {earlier.t:g}, the time of at_ms.{first}, whose target is {earlier.target}, too; must differ",
            )


class TargetTrackingScaling(MetricSpec, PolicySpec):
    """Keeps a metric at a target for each worker, by the alarms and cooldowns of AWS Application Auto Scaling."""

    kind: Literal["target_tracking"] = "target_tracking"
    """Kind of policy."""

    target: PerWorker
    """Of the metric, for one worker."""

    target_kind: Literal["average", "total"] = "average"
    """Whether the metric is a mean over the workers or a sum of all."""

    margin: Fraction = 0.1
    """How far, as a share, the metric may lie below its target without a scale-in."""

    scale_out_periods: PositiveCount = 3
    """Evaluations in a row above the target before a scale-out; an evaluation is a period of one minute by default."""

    scale_in_periods: PositiveCount = 15
    """Evaluations in a row below the target by more than the margin before a scale-in."""

    warmup_s: NonNegative = 300.0
    """How long a worker, once ready, is no capacity yet when the size is computed."""

    scale_out_cooldown_s: NonNegative = 300.0
    """Time from a scale-out in which only a larger fleet than it asked for is asked for."""

    scale_in_cooldown_s: NonNegative = 300.0
    """Least time from any change to a scale-in."""


class ProportionalScaling(MetricSpec, PolicySpec):
    """As many workers as a total of the fleet needs: no alarms, no cooldowns."""

    kind: Literal["proportional"] = "proportional"
    """Kind of policy."""

    per_worker: PerWorker
    """How much of the metric, as a total of the fleet, one worker is to have."""

    slack: Count = 0
    """Workers on top."""

    hold_s: NonNegative = 0.0
    """How long a smaller fleet must have been enough before a scale-in."""


MAX_ADJUSTED = 100.0 * MAX_WORKERS
"""Workers or percent of a step."""


class StepSpec(Spec):
    """An adjustment while the distance from the threshold lies between two bounds."""

    lower: float | None = None
    """Smallest distance; null = open."""

    upper: float | None = None
    """Largest distance; null = open."""

    adjustment: Annotated[float, Field(ge=-MAX_ADJUSTED, le=MAX_ADJUSTED)]
    """Workers, or percent of them."""

    @model_validator(mode="after")
    def _check_bounds(self) -> StepSpec:
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise Problems(
                [(("upper",), f"found {self.upper:g}; must be above lower, which is {self.lower:g}")]
            )
        return self


class AlarmSpec(MetricSpec):
    """An alarm and its steps."""

    threshold: float
    """Breached at or above it (up), at or below it (down)."""

    direction: Literal["up", "down"]
    """Which way a breach scales."""

    steps: tuple[StepSpec, ...] = Field(strict=False, json_schema_extra={"minItems": 1})
    """What to do, by the distance from the threshold."""

    adjustment_type: Literal["ChangeInCapacity", "ExactCapacity", "PercentChangeInCapacity"] = (
        "ChangeInCapacity"
    )
    """What an adjustment is."""

    min_adjustment_magnitude: Count = 0
    """Least change of a percentage, in workers."""

    evaluation_periods: PositiveCount = 1
    """How many of the last evaluations count; an evaluation is a period of one minute by default."""

    datapoints: PositiveCount | None = None
    """How many of them must breach; null = all."""

    @model_validator(mode="after")
    def _check_alarm(self) -> AlarmSpec:
        found: list[tuple[Path, str]] = []
        if not self.steps:
            found.append((("steps",), "must have at least 1 item"))
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
    """Alarms with steps, as step scaling of AWS has them."""

    kind: Literal["step_scaling"] = "step_scaling"
    """Kind of policy."""

    alarms: tuple[AlarmSpec, ...] = Field(strict=False, json_schema_extra={"minItems": 1})
    """The alarms; the largest of their targets counts."""

    warmup_s: NonNegative = 300.0
    """How long a worker, once ready, is no capacity yet; nothing is scaled in meanwhile."""

    scale_in_cooldown_s: NonNegative = 300.0
    """Least time between two scale-ins; a scale-out ends it."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if not self.alarms:
            yield ("alarms",), "must have at least 1 item"


class QueueProportionalScaling(PolicySpec):
    """As many workers as the queue needs."""

    kind: Literal["queue_proportional"] = "queue_proportional"
    """Kind of policy."""

    per_worker: PerWorker
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
    """How long a smaller fleet must have been enough before a scale-in."""


class SlaScaling(PolicySpec):
    """Keeps latency targets by a model of the engine learnt from its passes."""

    kind: Literal["sla"] = "sla"
    """Kind of policy."""

    ttft_ms: Positive | None = None
    """Target of the time to first token; null = that of the sla section."""

    itl_ms: Positive | None = None
    """Target of the time between tokens; null = that of the sla section."""

    interval_s: Positive = 5.0
    """Time between two evaluations."""

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

    kind: Literal["dynamo_planner"] = "dynamo_planner"
    """Kind of policy."""

    config: Annotated[
        Any,
        BeforeValidator(_checked_config),
        Field(json_schema_extra={"type": ["string", "object"]}),
    ]
    """The planner's configuration, or the path of a JSON or YAML file with it."""


class CustomScaling(PolicySpec):
    """A custom class with a method `decide(now_s, view, fleet)`."""

    kind: Literal["custom"] = "custom"
    """Kind of policy."""

    class_: Annotated[
        str,
        AfterValidator(_checked_class),
        Field(alias="class", json_schema_extra={"pattern": r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$"}),
    ]
    """As module:Class; the module is searched beside the scenario first."""

    options: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the class."""

    @model_serializer(mode="wrap")
    def _by_written_name(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {"class" if key == "class_" else key: value for key, value in handler(self).items()}


# ---------------------------------------------------------------- all of them


def _named_by_its_manifest(value: Any) -> Any:
    """A policy that is only a manifest needs no kind."""
    if isinstance(value, Mapping) and "manifest" in value and "kind" not in value:
        return {**value, "kind": "manifest"}
    return value


FloorPolicy = Annotated[
    TargetTrackingScaling
    | StepScaling
    | ProportionalScaling
    | QueueProportionalScaling
    | HpaScaling
    | CustomScaling
    | ManifestScaling,
    Field(discriminator="kind"),
    BeforeValidator(_named_by_its_manifest),
]


class PredictiveScaling(MetricSpec, PolicySpec):
    """Scales for the forecast of a metric; never below what a reactive policy wants."""

    kind: Literal["predictive"] = "predictive"
    """Kind of policy."""

    per_worker: PerWorker
    """How much of the metric, as a total of the fleet, one worker can do."""

    bin_s: Annotated[float, Field(ge=0.01)]
    """Length of a bin of its history."""

    floor_policy: FloorPolicy
    """The reactive policy; it is evaluated whenever this one is."""

    horizon_s: Positive | None = None
    """How far ahead; null = the startup time, in whole bins."""

    method: Literal["holt_winters", "seasonal_naive", "linear"] = "holt_winters"
    """How to forecast; holt_winters needs the package statsmodels."""

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
    | ProportionalScaling
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
