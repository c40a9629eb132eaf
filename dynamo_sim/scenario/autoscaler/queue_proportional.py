"""As many workers as the queue needs (spec 10, 5)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from dynamo_sim.scenario.autoscaler.parts import PerWorker, PolicySpec
from dynamo_sim.scenario.base import Count, Fraction, NonNegative


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
