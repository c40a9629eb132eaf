"""Knative's autoscaler, by keys (spec 10, 4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from dynamo_sim.scenario.autoscaler.manifest import FromManifest
from dynamo_sim.scenario.autoscaler.parts import Positive
from dynamo_sim.scenario.base import Count, NonNegative, Path, PositiveCount

MAX_KNATIVE_WINDOW_S = 86400
"""Of the stable window and of the delay of a scale-in; Knative itself stops at an hour."""


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
    """Spare capacity below which requests wait in front of the fleet; -1 = always."""

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
