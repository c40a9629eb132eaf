"""The least loaded worker."""

from __future__ import annotations

from typing import Literal

from dynamo_sim.scenario.routing.metrics import LoadMeasure, ScrapingSpec


class LeastLoadedRouting(ScrapingSpec):
    """Each request goes to the active worker with the smallest load."""

    mode: Literal["least_loaded"]
    """How workers are chosen."""

    by: LoadMeasure = "in_flight"
    """What load is."""
