"""Samples of one target over time, in arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class SampleSeries:
    """Rows of values at rising times.

    Args:
        columns: how many values a row has.
    """

    __slots__ = ("_begin", "_end", "_rows", "_times")

    def __init__(self, columns: int) -> None:
        self._times: Floats = np.empty(16)
        self._rows: Floats = np.empty((16, columns))
        self._begin = self._end = 0

    def append(self, at_s: float, row: Sequence[float], keep_from_s: float) -> None:
        """Add a row (one at the time of the last one replaces it), forgetting rows older than ``keep_from_s``."""
        if self._end > self._begin and self._times[self._end - 1] == at_s:
            self._rows[self._end - 1] = row
            return
        if self._end == len(self._times):
            self._grow(keep_from_s)
        self._times[self._end] = at_s
        self._rows[self._end] = row
        self._end += 1

    def _grow(self, keep_from_s: float) -> None:
        # One row before the limit stays: it is where a window that begins at the limit starts.
        first = max(
            self._begin, int(np.searchsorted(self._times[: self._end], keep_from_s, side="right")) - 1
        )
        retained = self._end - first
        size = len(self._times) if retained <= len(self._times) // 2 else 2 * len(self._times)
        times, rows = np.empty(size), np.empty((size, self._rows.shape[1]))
        times[:retained], rows[:retained] = self._times[first : self._end], self._rows[first : self._end]
        self._times, self._rows, self._begin, self._end = times, rows, 0, retained

    @property
    def times(self) -> Floats:
        """Times of the rows that are retained."""
        return self._times[self._begin : self._end]

    @property
    def rows(self) -> Floats:
        """The rows that are retained."""
        return self._rows[self._begin : self._end]

    def place_at(self, at_s: float) -> int:
        """Place of the last row at or before a time; -1 when there is none."""
        return int(np.searchsorted(self.times, at_s, side="right")) - 1
