"""When the requests of a generated workload arrive."""

from __future__ import annotations

from math import inf

import numpy as np

from dynamo_sim.errors import ScenarioError
from dynamo_sim.limits import MAX_REQUESTS
from dynamo_sim.random_streams import stream
from dynamo_sim.scenario.arrivals import ConstantArrivals, GammaArrivals, PoissonArrivals, RateShape
from dynamo_sim.workload.arrivals.rates import Floats, rate_profile

MAX_TIME_US = 2.0**53
"""Beyond this, 285 years, a float cannot count microseconds."""

MIN_CHUNK = 1024
MAX_CHUNK = 1 << 20


def arrival_times_ms(
    shape: RateShape,
    seed: int,
    count: int | None = None,
    duration_s: float | None = None,
    speedup: float = 1.0,
) -> Floats:
    """Arrival times in ascending order, in whole microseconds before the speed-up.

    Evenly spaced events 0, 1, 2, ..., or random ones with mean gap 1, are moved to the times at which the
    rate lets so many requests be expected (`rates`). Hence the same seed gives the same random events to
    every rate, and a longer load begins like a shorter one.

    The microsecond is there for reproducibility: it is coarser than what mathematics libraries of different
    platforms disagree about.

    Args:
        shape: the rate, and how random arrivals are.
        seed: the scenario's seed.
        count: most arrivals, or None.
        duration_s: only arrivals before this time, or None.
        speedup: divides the times, after everything else.

    Raises:
        ScenarioError: nothing arrives, too much does, or too late for a clock.
    """
    rates = rate_profile(shape)
    end_s = inf if duration_s is None else duration_s
    expected = float(rates.expected_by(np.array([end_s]))[0])
    total = min(expected, inf if count is None else count)
    if total > MAX_REQUESTS:
        raise ScenarioError(
            f"workload: about {total:.3g} requests would arrive; at most "
            f"{MAX_REQUESTS:,} are possible in a run (lower the rate, duration_s or request_count)"
        )
    burstiness = _burstiness(shape)
    if burstiness is None:
        events = _even_events(expected, count)
    else:
        events = _random_events(expected, count, burstiness, stream(seed, "workload/arrivals"))
    with np.errstate(over="ignore"):  # what a tiny rate makes infinitely late does not arrive
        times_us = np.rint(rates.when_expected(events) * 1e6)
    times_us = times_us[np.isfinite(times_us) & (times_us < end_s * 1e6)]
    if not times_us.size:
        raise ScenarioError(
            f"workload: no request arrives; {expected:.3g} are expected from these arrivals and duration_s"
        )
    last_us = float(times_us[-1]) / speedup
    if max(last_us, float(times_us[-1])) > MAX_TIME_US:
        raise ScenarioError(
            f"workload.arrivals: the last of {times_us.size:,} requests would arrive after "
            f"{last_us / 1e6:.3g} s, which no clock here can count; raise the rate"
        )
    return times_us / 1e3 / speedup


def _burstiness(shape: RateShape) -> float | None:
    """Shape parameter of the gaps; None = equal gaps."""
    match shape:
        case ConstantArrivals():
            return None
        case PoissonArrivals():
            return 1.0
        case GammaArrivals():
            return shape.burstiness
        case _:
            return shape.burstiness if shape.random else None


def _even_events(expected: float, count: int | None) -> Floats:
    """0, 1, 2, ...: at most ``count``, and one more than can be before the end, which rounding decides."""
    limit = MAX_REQUESTS if count is None else count
    return np.arange(min(limit, expected + 1.0), dtype=np.float64)


def _random_events(
    expected: float, count: int | None, burstiness: float, random: np.random.Generator
) -> Floats:
    """Events with gamma gaps of mean 1 up to ``expected``, at most ``count``.

    Gaps are drawn and added in order, so the size of the chunks changes nothing.
    """
    chunks: list[Floats] = []
    missing = inf if count is None else count
    last = 0.0
    while missing > 0 and last <= expected:
        left = min(missing, (expected - last) * 1.01 + MIN_CHUNK)
        gaps = random.standard_gamma(burstiness, int(min(left, MAX_CHUNK)))
        gaps /= burstiness
        gaps[0] += last
        events = np.cumsum(gaps)
        chunks.append(events)
        last = float(events[-1])
        missing -= events.size
    return np.concatenate(chunks)
