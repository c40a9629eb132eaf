"""Latency targets (spec 10, 6.7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from dynamo_sim.scenario.autoscaler.parts import PolicySpec, Positive
from dynamo_sim.scenario.base import NonNegative, Path, PositiveCount


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
