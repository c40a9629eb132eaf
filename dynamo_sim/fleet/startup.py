"""Draws the durations of startups."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dynamo_sim.random_streams import stream

if TYPE_CHECKING:
    from dynamo_sim.scenario.startup import Startup


def startup_durations(startup: Startup, seed: int, fleet: str = "fleet") -> Callable[[int], float]:
    """How long the startup of the worker with a given id takes, in ms (whole milliseconds).

    ``fleet`` is the name of the fleet. Every worker has a stream of its own, so the duration does not depend on how
    many others were started. Measured durations taken in order go by worker id.
    """

    def duration_ms(worker_id: int) -> float:
        draw = stream(seed, f"{fleet}/startup/{worker_id}")
        if startup.uniform is not None:
            seconds = startup.uniform.min_s + (startup.uniform.max_s - startup.uniform.min_s) * float(
                draw.random()
            )
        elif startup.lognormal is not None:
            seconds = startup.lognormal.median_s * math.exp(
                startup.lognormal.sigma * float(draw.standard_normal())
            )
        else:
            measured = startup.empirical_s or (0.0,)
            place = worker_id if startup.in_order else int(draw.integers(len(measured)))
            seconds = measured[place % len(measured)]
        if startup.max_s is not None:
            seconds = min(seconds, startup.max_s)
        return float(round(seconds * 1000.0))

    return duration_ms
