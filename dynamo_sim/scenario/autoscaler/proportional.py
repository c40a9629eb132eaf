"""As many workers as a total of the fleet needs (spec 10, 0 and 5)."""

from __future__ import annotations

from typing import Literal

from dynamo_sim.scenario.autoscaler.parts import MetricSpec, PerWorker, PolicySpec
from dynamo_sim.scenario.base import Count, NonNegative


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
