"""Durations are whole numbers of nanoseconds (`spec 04, 1`); here is how they are made and read."""

from __future__ import annotations

import math
from fractions import Fraction

from dynamo_sim.errors import SimulationError

NS_PER_SECOND = 10**9

_NEAR_HALF = 1e-6
_MAX_S = 2.0**64  # what the reference can hold


def ns_of_seconds(value_s: float) -> int:
    """The exact value of the double ``value_s``, times 10**9, to the nearest integer, ties to even.

    Raises:
        SimulationError: ``value_s`` is no number, or too large for any duration.
    """
    if not value_s < _MAX_S:
        raise SimulationError(
            f"a pass cannot take {value_s} s; look at the speed-up ratios, and for inf or nan in the timing profile"
        )
    product = value_s * 1e9
    # The rounded product may fall on the other side of a half than the exact one, but only close to it.
    if abs(product - math.floor(product) - 0.5) < _NEAR_HALF * max(1.0, product * 1e-9):
        return round(Fraction(value_s) * NS_PER_SECOND)
    return round(product)


def whole_ns(ms: float) -> int:
    """Milliseconds to whole nanoseconds: divided by 1000.0 as a double, then exactly rounded."""
    return ns_of_seconds(ms / 1000.0)


def seconds(ns: int) -> float:
    """Whole nanoseconds >= 0 to seconds: whole seconds plus the fraction, in this order."""
    return float(ns // NS_PER_SECOND) + float(ns % NS_PER_SECOND) / 1e9


def milliseconds(ns: int) -> float:
    """Whole nanoseconds >= 0 to the milliseconds that are added to the clock."""
    return seconds(ns) * 1000.0


def scaled_ns(ns: int, ratio: float) -> int:
    """A duration sped up by ``ratio``, rounded again; a ratio <= 0 means no scaling, not "instant"."""
    if ratio <= 0 or ns <= 0:
        return ns
    return ns_of_seconds(seconds(ns) / ratio)


def pass_ms(ms: float, ratio: float) -> float:
    """The step of the clock for a model's ``ms``: rounded, scaled by ``ratio``, rounded again."""
    return milliseconds(scaled_ns(whole_ns(ms), ratio))
