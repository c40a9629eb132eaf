"""What a ScaledObject says (`spec 10, 3.1`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from dynamo_sim.autoscaling.kubernetes.hpa.spec import HpaMetric
from dynamo_sim.autoscaling.kubernetes.keda.formula import Formula
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.cron import CronWindow
from dynamo_sim.scenario.autoscaler.keda import ScaledObjectKeys


@dataclass(frozen=True, slots=True)
class MetricTrigger:
    """A trigger on a metric, such as one of type ``prometheus``.

    Attributes:
        query: what is asked of our metrics.
        threshold_milli: target in thousandths.
        activation: the trigger is active strictly above it.
        metric_type: ``AverageValue`` or ``Value``.
        name: for formulas and messages.
        ignore_null: whether no data counts as 0; else it is an error.
        use_cached: whether the HPA gets the value of the last poll.
        one_series: whether the query gives one number; else it gives one a worker, and fails with several workers.
    """

    query: MetricQuery
    threshold_milli: int
    activation: float = 0.0
    metric_type: str = "AverageValue"
    name: str = ""
    ignore_null: bool = True
    use_cached: bool = False
    one_series: bool = True


@dataclass(frozen=True, slots=True)
class CronTrigger:
    """A trigger that asks for ``desired`` workers while a window is open (target 1 a worker)."""

    window: CronWindow
    desired: int
    name: str = ""
    metric_type: str = "AverageValue"
    threshold_milli: int = 1000
    activation: float = 0.0
    use_cached: bool = False


@dataclass(frozen=True, slots=True)
class ResourceTrigger:
    """A trigger of type ``cpu`` or ``memory``: a resource metric of the HPA; it never wakes a fleet."""

    metric: HpaMetric
    name: str = ""


Trigger = MetricTrigger | CronTrigger | ResourceTrigger


@dataclass(frozen=True, slots=True)
class Modifiers:
    """``advanced.scalingModifiers``: one composite metric instead of those of the triggers (`spec 10, 3.5`)."""

    formula: Formula
    target_milli: int
    activation: float = 0.0
    metric_type: str = "AverageValue"


@dataclass(frozen=True, slots=True)
class ScaledObjectSpec:
    """A ScaledObject: its triggers as they are read, and its settings.

    Attributes:
        keys: everything beside the triggers and the formula.
        name: of the manifest.
    """

    triggers: tuple[Trigger, ...] = ()
    keys: ScaledObjectKeys = field(default_factory=ScaledObjectKeys)
    modifiers: Modifiers | None = None
    name: str = ""

    @property
    def has_valid_fallback(self) -> bool:
        """Whether the fallback is taken; with a formula KEDA wants a whole number for its target."""
        if self.keys.fallback is None:
            return False
        return self.modifiers is None or self.modifiers.target_milli % 1000 == 0
