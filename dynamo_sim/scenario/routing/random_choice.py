"""A random worker."""

from __future__ import annotations

from typing import Literal

from dynamo_sim.scenario.base import Spec


class RandomRouting(Spec):
    """Each request goes to a random active worker."""

    mode: Literal["random"]
    """How workers are chosen."""
