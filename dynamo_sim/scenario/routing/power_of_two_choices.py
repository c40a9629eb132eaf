"""The less loaded of two random workers."""

from __future__ import annotations

from typing import Literal

from dynamo_sim.scenario.routing.metrics import LoadMeasure, ScrapingSpec


class PowerOfTwoChoicesRouting(ScrapingSpec):
    """Two active workers are drawn for each request; the less loaded one gets it."""

    mode: Literal["power_of_two_choices"]
    """How workers are chosen."""

    by: LoadMeasure = "in_flight"
    """What load is."""
