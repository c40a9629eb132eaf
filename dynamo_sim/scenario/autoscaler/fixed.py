"""A fleet of always the same size (spec 10, 5)."""

from __future__ import annotations

from typing import Literal

from dynamo_sim.scenario.autoscaler.parts import PolicySpec, Workers


class FixedScaling(PolicySpec):
    """Always the same number of workers."""

    kind: Literal["fixed"] = "fixed"
    """Kind of policy."""

    count: Workers
    """Desired workers."""
