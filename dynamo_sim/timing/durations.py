"""Durations are whole numbers of nanoseconds (`spec 04, 1`); here is how they are made and read.

Every function has a plain form for one value and a vectorised twin (``..._many``) with the same bits.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dynamo_sim.errors import SimulationError

NS_PER_SECOND = 10**9

_NEAR_HALF = 1e-6
_VECTOR_LIMIT_NS = 1e14  # up to here a double product of seconds is off by far less than `_NEAR_HALF`


def ns_of_seconds(value_s: float) -> int:
    """The exact value of the double ``value_s``, times 10**9, to the nearest integer, ties to even.

    Raises:
        SimulationError: ``value_s`` is not finite.
    """
    product = value_s * 1e9
    if not math.isfinite(product):
        raise SimulationError(f"a pass cannot take {value_s} s; look for inf or nan in the timing profile")
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


def pass_ms_many(ms: npt.NDArray[np.float64], ratio: float) -> npt.NDArray[np.float64]:
    """`pass_ms` of every element of a one-dimensional array, bit for bit the same."""
    if ms.size and not float(ms.max()) < _VECTOR_LIMIT_NS / 1e6:  # also nan
        return np.array([pass_ms(value, ratio) for value in ms.tolist()])
    ns = _ns_of_seconds_many(ms / 1000.0)
    if ratio > 0:
        shorter = _seconds_many(ns) / ratio
        if shorter.size and not float(shorter.max()) < _VECTOR_LIMIT_NS / 1e9:
            return np.array([pass_ms(value, ratio) for value in ms.tolist()])
        ns = _ns_of_seconds_many(shorter)
    return _seconds_many(ns) * 1000.0


def _ns_of_seconds_many(values_s: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    product = values_s * 1e9
    ns = np.rint(product).astype(np.int64)
    margin = _NEAR_HALF * np.maximum(1.0, product * 1e-9)
    for index in np.flatnonzero(np.abs(product - np.floor(product) - 0.5) < margin).tolist():
        ns[index] = ns_of_seconds(float(values_s[index]))
    return ns


def _seconds_many(ns: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    whole, rest = np.divmod(ns, NS_PER_SECOND)
    return whole.astype(np.float64) + rest.astype(np.float64) / 1e9
