"""Tracks a target of a metric (spec 10, 0 and 5)."""

from __future__ import annotations

from typing import Literal

from dynamo_sim.scenario.autoscaler.parts import MetricSpec, PerWorker, PolicySpec
from dynamo_sim.scenario.base import Fraction, NonNegative, PositiveCount


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
