"""How long a pass takes, learnt from passes (`spec 10, 6.7`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

PASSES = 64
"""How many of the last passes are kept."""

DISTINCT = 5
"""How many different ones are needed."""

Floats = NDArray[np.float64]


class PassModel:
    """``wall_time = a + b * prefill tokens + c * decode requests + d * decode kv tokens``, all of them at least 0."""

    def __init__(self) -> None:
        self._rows: deque[tuple[float, float, float, float]] = deque(maxlen=PASSES)
        self._fit: Floats | None = None
        self._stale = False

    def observe(self, passes: Iterable[Mapping[str, Any]]) -> None:
        """Take forward-pass snapshots, in order."""
        for row in passes:
            if row["wall_time"] > 0:
                work = row["sum_prefill_tokens"], row["num_decode_requests"], row["sum_decode_kv_tokens"]
                self._rows.append((row["wall_time"], *work))
                self._stale = True

    @property
    def is_ready(self) -> bool:
        """Whether enough different passes have been seen."""
        return len(self._rows) >= DISTINCT and len({row[1:] for row in self._rows}) >= DISTINCT

    @property
    def coefficients(self) -> Floats:
        """The four coefficients in seconds; only when ready."""
        if self._stale or self._fit is None:
            rows = np.asarray(self._rows, dtype=np.float64)
            work = np.column_stack([np.ones(len(rows)), rows[:, 1:]])
            self._fit = least_squares_from_zero(work, rows[:, 0])
            self._stale = False
        return self._fit

    def seconds(self, prefill: ArrayLike, requests: ArrayLike, kv_tokens: ArrayLike) -> Floats:
        """Duration of passes with that work; arrays broadcast."""
        a, b, c, d = self.coefficients
        found: Floats = a + b * np.asarray(prefill) + c * np.asarray(requests) + d * np.asarray(kv_tokens)
        return found


def least_squares_from_zero(matrix: Floats, wanted: Floats) -> Floats:
    """The coefficients, none below 0, with the least squares; the best of all subsets of columns, so for a few columns.

    Of equally good ones the subset with fewer columns counts, so what never varied gets no weight.
    """
    columns = matrix.shape[1]
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    scaled = matrix / scale
    best, least = np.zeros(columns), float(wanted @ wanted)
    for size in range(1, columns + 1):
        for subset in combinations(range(columns), size):
            chosen = scaled[:, subset]
            found, *_ = np.linalg.lstsq(chosen, wanted, rcond=None)
            if (found < 0).any():
                continue
            error = wanted - chosen @ found
            squares = float(error @ error)
            if squares < least * (1 - 1e-9) - 1e-24:
                best = np.zeros(columns)
                best[list(subset)] = found
                least = squares
    return best / scale
