"""What an HPA goes by, whether keys, a manifest or a ScaledObject say it (`spec 10, 2.1`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.scenario.autoscaler.behavior import BehaviorSpec
from dynamo_sim.scenario.autoscaler.manifest import HpaFlags

POD_TYPES = ("Pods", "Resource")
"""Sources with a sample a worker; `ContainerResource` is read as `Resource`."""

TOTAL_TYPES = ("Object", "External")
"""Sources with one number."""


@dataclass(frozen=True, slots=True)
class HpaMetric:
    """One entry of ``spec.metrics``.

    Attributes:
        source: ``Pods``, ``Resource``, ``Object`` or ``External``.
        target_type: ``AverageValue``, ``Value`` or ``Utilization``.
        target: in thousandths; for ``Utilization`` a percentage.
        query: what is asked of our metrics.
        name: the manifest's name of it.
        request_milli: what one worker requests of a resource, in thousandths.
    """

    source: str
    target_type: str
    target: int
    query: MetricQuery
    name: str = ""
    request_milli: int = 1000

    def __post_init__(self) -> None:
        allowed = {
            "Pods": ("AverageValue",),
            "Resource": ("AverageValue", "Utilization"),
            "Object": ("Value", "AverageValue"),
            "External": ("Value", "AverageValue"),
        }
        if self.source not in allowed:
            raise ValueError(f"a metric's type is one of {', '.join(allowed)}, got {self.source!r}")
        if self.target_type not in allowed[self.source]:
            raise ValueError(
                f"a {self.source} metric has a target of type {' or '.join(allowed[self.source])}, "
                f"got {self.target_type!r}"
            )
        if self.target <= 0:
            raise ValueError("a target must be above 0")
        if self.source in POD_TYPES and not self.query.spec.per_worker:
            raise ValueError(
                f"{self.query.metric} is one value for the whole fleet, and a {self.source} metric needs one a worker"
            )


@dataclass(frozen=True, slots=True)
class HpaSpec:
    """The spec of an HPA.

    Attributes:
        min_replicas, max_replicas: bounds.
        metrics: at least one.
        behavior: None when the manifest has no such section.
        name: of the manifest.
    """

    max_replicas: int
    min_replicas: int = 1
    metrics: tuple[HpaMetric, ...] = ()
    behavior: BehaviorSpec | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a ratio may be from 1 without a change, in each direction."""

    up: float = 0.1
    down: float = 0.1

    def covers(self, ratio: float) -> bool:
        """Both ends included, in floats as the controller computes it."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up

    @classmethod
    def of(cls, behavior: BehaviorSpec | None, flags: HpaFlags) -> Tolerance:
        """The behaviour's own, else the controller's."""
        up = behavior.up.tolerance if behavior is not None else None
        down = behavior.down.tolerance if behavior is not None else None
        flag = flags.tolerance
        return cls(flag if up is None else up, flag if down is None else down)


@dataclass(slots=True)
class HpaState:
    """What an HPA remembers.

    Attributes:
        history: recommendations as (replicas, time); their order matters only for which slot is used again.
        ups, downs: changes as (size, time).
    """

    history: list[tuple[int, float]] = field(default_factory=list)
    ups: list[tuple[int, float]] = field(default_factory=list)
    downs: list[tuple[int, float]] = field(default_factory=list)
