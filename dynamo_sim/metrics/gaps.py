"""Gaps between consecutive tokens, kept in bulk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class GapLog:
    """Inter-token gaps of one worker as (gap in ms, how often) pairs (`spec 09, 10`).

    All requests that got a token in the same two consecutive passes have the same gap to the bit, so a pass adds
    one pair, however many requests run.
    """

    __slots__ = ("counts", "gaps_ms")

    def __init__(self) -> None:
        self.gaps_ms: list[float] = []
        self.counts: list[int] = []

    def add(self, gap_ms: float, count: int) -> None:
        """Note ``count`` gaps of ``gap_ms`` each."""
        self.gaps_ms.append(gap_ms)
        self.counts.append(count)


def merged_gaps(logs: list[GapLog]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """All gaps of several workers: distinct values ascending, and how often each occurred.

    The result does not depend on how the gaps were grouped when they were noted, so what is computed from it is
    the same to the bit with and without stretches.
    """
    gaps = np.concatenate([np.asarray(log.gaps_ms, dtype=np.float64) for log in logs]) if logs else np.empty(0)
    counts = np.concatenate([np.asarray(log.counts, dtype=np.int64) for log in logs]) if logs else np.empty(0, np.int64)
    gaps = np.maximum(gaps, 0.0)
    values, place = np.unique(gaps, return_inverse=True)
    totals = np.zeros(len(values), dtype=np.int64)
    np.add.at(totals, place, counts)
    keep = totals > 0
    return values[keep], totals[keep]
