"""The arrival speed-up: what divides the times of a workload (`spec 08, 3`)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from math import inf, isfinite

from dynamo_sim.errors import ScenarioError
from dynamo_sim.text import plain_number


def check_ratio(ratio: float, what: str = "ratio") -> None:
    """Raise ScenarioError unless an arrival speed-up is finite and above 0 (`spec 08, 3`)."""
    if not (isfinite(ratio) and ratio > 0):
        raise ScenarioError(
            f"{what} must be a finite positive number, got {plain_number(ratio)} (arrival_speedup_ratio)"
        )


def sped_up(times_ms: Iterable[float], ratio: float, what: str) -> array[float]:
    """Times divided by the arrival speed-up.

    Raises:
        ScenarioError: one of them becomes infinite.
    """
    divided = array("d", (time_ms / ratio for time_ms in times_ms))
    if divided and max(divided) == inf:
        raise ScenarioError(
            f"{what} is infinitely late: the times of the workload, divided by arrival_speedup_ratio={ratio}, are "
            "too large for a clock"
        )
    return divided
