"""The next worker in turn (spec 01, 8)."""

from __future__ import annotations

from typing import Literal

from dynamo_sim.scenario.base import Spec


class RoundRobinRouting(Spec):
    """Each request goes to the next worker in turn."""

    mode: Literal["round_robin"]
    """How workers are chosen."""
