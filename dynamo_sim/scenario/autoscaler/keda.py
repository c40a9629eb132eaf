"""KEDA ScaledObject, by keys (spec 10, 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field

from dynamo_sim.scenario.autoscaler.behavior import BehaviorSpec
from dynamo_sim.scenario.autoscaler.hpa import MAX_ENTRIES
from dynamo_sim.scenario.autoscaler.manifest import FromManifest
from dynamo_sim.scenario.autoscaler.parts import CronExpression, MetricSpec, Positive, TimeZone
from dynamo_sim.scenario.base import CheckedSpec, Count, NonNegative, Path, PositiveCount, Spec


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
