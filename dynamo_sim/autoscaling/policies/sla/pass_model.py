"""How long a pass takes, learnt from passes (`spec 10, 0 and 6.7`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_PASSES = 64
"""How many passes are retained."""

DISTINCT = 5
"""How many different ones are needed."""

SHARES = 4
"""Classes of prefill tokens, and of decode KV tokens, that passes are retained by."""

Floats = NDArray[np.float64]
Row = tuple[float, float, float, float]


class RetainedPasses:
    """The last passes of each kind of work, so that many of one kind do not push out the few of another.

    A pass falls into one of 16 buckets, by its prefill tokens and its decode KV tokens, each as a share of the largest
    number seen. Above `MAX_PASSES` the oldest pass of the fullest bucket goes.
    """

    def __init__(self) -> None:
        self._buckets: list[deque[tuple[int, Row]]] = [deque() for _ in range(SHARES * SHARES)]
        self._largest = [0.0, 0.0]
        self._seen = 0

    def add(self, row: Row) -> None:
        """Retain a pass: duration in s, prefill tokens, decode requests, decode KV tokens."""
        prefill, kv = row[1], row[3]
        if prefill > self._largest[0] or kv > self._largest[1]:
            self._largest = [max(self._largest[0], prefill), max(self._largest[1], kv)]
            self._sort_again()
        self._buckets[self._place(row)].append((self._seen, row))
        self._seen += 1
        if self._seen > MAX_PASSES:
            max(self._buckets, key=len).popleft()

    def rows(self) -> list[Row]:
        """All passes that are retained."""
        return [row for bucket in self._buckets for _, row in bucket]

    def _place(self, row: Row) -> int:
        # No prefill is a class of its own: most passes of a long answer have none.
        prefill = 1 + min(SHARES - 2, int((SHARES - 1) * row[1] / self._largest[0])) if row[1] else 0
        kv = min(SHARES - 1, int(SHARES * row[3] / self._largest[1])) if row[3] else 0
        return SHARES * prefill + kv

    def _sort_again(self) -> None:
        retained = sorted(entry for bucket in self._buckets for entry in bucket)  # the oldest first
        for bucket in self._buckets:
            bucket.clear()
        for number, row in retained:
            self._buckets[self._place(row)].append((number, row))


class PassModel:
    """``wall_time = a + b * prefill tokens + c * decode requests + d * decode kv tokens``, all of them at least 0."""

    def __init__(self) -> None:
        self._passes = RetainedPasses()
        self._fit: Floats | None = None
        self._is_ready = False

    def observe(self, passes: Iterable[Mapping[str, Any]]) -> None:
        """Take forward-pass snapshots, in order."""
        for row in passes:
            if row["wall_time"] > 0:
                work = row["sum_prefill_tokens"], row["num_decode_requests"], row["sum_decode_kv_tokens"]
                self._passes.add((row["wall_time"], *work))
                self._fit = None

    @property
    def is_ready(self) -> bool:
        """Whether enough different passes have been seen, one with a prefill among them: else it would cost nothing."""
        if not self._is_ready:
            kinds = {row[1:] for row in self._passes.rows()}
            self._is_ready = len(kinds) >= DISTINCT and any(prefill for prefill, _, _ in kinds)
        return self._is_ready

    @property
    def coefficients(self) -> Floats:
        """The four coefficients in seconds; only when ready."""
        if self._fit is None:
            rows = np.asarray(self._passes.rows(), dtype=np.float64)
            work = np.column_stack([np.ones(len(rows)), rows[:, 1:]])
            self._fit = least_squares_from_zero(work, rows[:, 0])
        return self._fit

    def seconds(self, prefill: ArrayLike, requests: ArrayLike, kv_tokens: ArrayLike) -> Floats:
        """Duration of passes with that work; arrays broadcast."""
        a, b, c, d = self.coefficients
        found: Floats = a + b * np.asarray(prefill) + c * np.asarray(requests) + d * np.asarray(kv_tokens)
        return found


def least_squares_from_zero(matrix: Floats, values: Floats) -> Floats:
    """The coefficients, none below 0, with the least squares; the best of all subsets of columns, so for a few columns.

    Of equally good ones the subset with fewer columns counts, so what never varied gets no weight.
    """
    columns = matrix.shape[1]
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    scaled = matrix / scale
    best, least = np.zeros(columns), float(values @ values)
    for size in range(1, columns + 1):
        for subset in combinations(range(columns), size):
            chosen = scaled[:, subset]
            found, *_ = np.linalg.lstsq(chosen, values, rcond=None)
            if (found < 0).any():
                continue
            error = values - chosen @ found
            squares = float(error @ error)
            if squares < least * (1 - 1e-9) - 1e-24:
                best = np.zeros(columns)
                best[list(subset)] = found
                least = squares
    return best / scale
