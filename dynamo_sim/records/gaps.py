"""Gaps between consecutive tokens, kept in bulk."""

from __future__ import annotations

from array import array
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


class GapLog:
    """Inter-token gaps of one worker (`spec 09, 10`).

    All requests that got a token in the same two consecutive passes have the same gap to the bit, so a pass
    adds one value, however many requests run, and a stretch is kept as the list of its pass ends.
    """

    __slots__ = ("_counts", "_ends_ms", "_gaps_ms", "_stretch_counts", "_stretch_passes")

    def __init__(self) -> None:
        # Arrays, not lists: a long run has millions of passes, and a float in a list takes 32 bytes.
        self._gaps_ms = array("d")
        self._counts = array("q")
        self._stretch_passes = array("q")
        self._stretch_counts = array("q")  # requests in each pass of a stretch
        self._ends_ms = array("d")  # per stretch: the pass end before it, then its own

    def add(self, gap_ms: float, count: int) -> None:
        """Note ``count`` gaps of ``gap_ms`` each."""
        self._gaps_ms.append(gap_ms)
        self._counts.append(count)

    def add_stretch(self, before_ms: float, ends_ms: list[float], count: int) -> None:
        """Note that ``count`` requests got a token at ``before_ms`` and then one at each of ``ends_ms``."""
        self._ends_ms.append(before_ms)
        self._ends_ms.fromlist(ends_ms)
        self._stretch_passes.append(len(ends_ms))
        self._stretch_counts.append(count)

    def since(
        self, mark: tuple[int, int, int], now_ms: float
    ) -> tuple[list[tuple[float, float, int]], tuple[int, int, int]]:
        """What was noted after ``mark``: (time, gap, count), times and gaps in ms, and the new mark.

        ``now_ms`` stands for the time of gaps that were noted without one.
        """
        single, stretch, place = mark
        found = [(now_ms, g, c) for g, c in zip(self._gaps_ms[single:], self._counts[single:], strict=True)]
        for passes, count in zip(self._stretch_passes[stretch:], self._stretch_counts[stretch:], strict=True):
            ends = self._ends_ms[place : place + passes + 1]
            found += [(end, end - before, count) for before, end in pairwise(ends)]
            place += passes + 1
        return found, (len(self._gaps_ms), len(self._stretch_passes), place)

    def arrays(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """All gaps in ms, and how many requests had each; not merged, not sorted."""
        ends = np.asarray(self._ends_ms, dtype=np.float64)
        passes = np.asarray(self._stretch_passes, dtype=np.int64)
        first = np.zeros(len(ends), dtype=bool)
        first[np.cumsum(passes + 1) - passes - 1] = True
        within = np.diff(ends)[~first[1:]] if len(ends) else ends
        gaps = np.concatenate([np.asarray(self._gaps_ms, dtype=np.float64), within])
        multiples = np.repeat(np.asarray(self._stretch_counts, dtype=np.int64), passes)
        counts = np.concatenate([np.asarray(self._counts, dtype=np.int64), multiples])
        return np.maximum(gaps, 0.0), counts


def merged_gaps(logs: list[GapLog]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """All gaps of several workers: distinct values ascending, and how often each occurred.

    The result does not depend on how the gaps were grouped when they were noted, so what is computed from it
    is the same to the bit with and without stretches.
    """
    pairs = [log.arrays() for log in logs]
    gaps = np.concatenate([np.empty(0), *(gap for gap, _ in pairs)])
    counts = np.concatenate([np.empty(0, dtype=np.int64), *(count for _, count in pairs)])
    if not len(gaps):
        return gaps, counts
    order = np.argsort(gaps)  # equal gaps are added up, so their order is free and the fastest sort will do
    gaps, counts = gaps[order], counts[order]
    starts = np.flatnonzero(np.concatenate([[True], gaps[1:] != gaps[:-1]]))
    totals = np.add.reduceat(counts, starts)
    keep = totals > 0
    return gaps[starts][keep], totals[keep]
