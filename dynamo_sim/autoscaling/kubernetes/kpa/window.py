"""Averages over one-second buckets (`spec 10, 4.2`)."""

from __future__ import annotations

import math

import numpy as np


class BucketWindow:
    """A ring of one-second buckets.

    Args:
        window_s: its length; whole seconds count.
    """

    def __init__(self, window_s: float) -> None:
        self.buckets = max(1, math.ceil(window_s))
        self._values = np.zeros(self.buckets)
        self._first: int | None = None
        self._last = 0

    def record(self, at_s: float, value: float) -> None:
        """Add to the bucket of that second."""
        second, n = math.floor(at_s), self.buckets
        if self._first is None or second - self._last >= n:
            self._values[:] = 0.0
            self._first = self._last = second
        elif second > self._last:
            passed = np.arange(self._last + 1, second + 1) % n
            self._values[passed] = 0.0
            self._last = second
        elif second <= self._last - n:
            return  # older than the window
        self._values[second % n] += value

    def average(self, now_s: float) -> float | None:
        """The average as of now, to six decimals; None when nothing was ever recorded."""
        if self._first is None:
            return None
        n = self.buckets
        silent = math.floor(now_s) - self._last
        seen = self._last - self._first + 1
        if silent >= n:
            return 0.0
        if silent <= 0:
            total, divisor = float(self._values.sum()), min(seen, n)
        else:
            young = np.arange(self._last - n + 1 + silent, self._last + 1) % n
            total, divisor = float(self._values[young].sum()), min(seen, n - silent)
        return _rounded(total / divisor)


def _rounded(value: float) -> float:
    """Six decimals, halves away from zero."""
    scaled = abs(value) * 1e6
    whole = math.floor(scaled)
    return math.copysign((whole + (scaled - whole >= 0.5)) / 1e6, value)
