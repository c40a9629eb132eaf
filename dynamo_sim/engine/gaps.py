"""Gaps between consecutive tokens, recorded in bulk."""

from __future__ import annotations

from array import array
from itertools import pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

Gaps = tuple[NDArray[np.float64], NDArray[np.int64]]
"""Gaps in ms, and how many requests had each."""


class GapLog:
    """Inter-token gaps of one worker (`spec 09, 10`).

    All requests that got a token in the same two consecutive passes have the same gap to the bit, so a pass
    adds one value, however many requests run, and a stretch is stored as the list of its pass ends.
    """

    __slots__ = ("_at_ms", "_counts", "_ends_ms", "_gaps_ms", "_stretch_counts", "_stretch_passes")

    def __init__(self) -> None:
        # Arrays, not lists: a long run has millions of passes, and a float in a list takes 32 bytes.
        self._gaps_ms = array("d")
        self._at_ms = array("d")  # when each of those ended
        self._counts = array("q")
        self._stretch_passes = array("q")
        self._stretch_counts = array("q")  # requests in each pass of a stretch
        self._ends_ms = array("d")  # per stretch: the pass end before it, then its own

    def add(self, before_ms: float, at_ms: float, count: int) -> None:
        """Note that ``count`` requests got a token at ``before_ms`` and the next one at ``at_ms``."""
        self._gaps_ms.append(at_ms - before_ms)
        self._at_ms.append(at_ms)
        self._counts.append(count)

    def add_stretch(self, before_ms: float, ends_ms: list[float], count: int) -> None:
        """Note that ``count`` requests got a token at ``before_ms`` and then one at each of ``ends_ms``."""
        self._ends_ms.append(before_ms)
        self._ends_ms.fromlist(ends_ms)
        self._stretch_passes.append(len(ends_ms))
        self._stretch_counts.append(count)

    def since(
        self, mark: tuple[int, int, int], until_ms: float
    ) -> tuple[list[tuple[float, float, int]], tuple[int, int, int]]:
        """What was noted after ``mark`` and ended by ``until_ms``: (time, gap, count), in order of time; the new mark.

        Times and gaps are in ms. What belongs to a pass that has not ended by then is left for later.
        """
        single, stretch, place = mark
        found = []
        while single < len(self._at_ms) and self._at_ms[single] <= until_ms:
            found.append((self._at_ms[single], self._gaps_ms[single], self._counts[single]))
            single += 1
        while stretch < len(self._stretch_passes):
            ends = self._ends_ms[place : place + self._stretch_passes[stretch] + 1]
            if ends[-1] > until_ms:
                break
            found += [(end, end - before, self._stretch_counts[stretch]) for before, end in pairwise(ends)]
            place += len(ends)
            stretch += 1
        found.sort(key=itemgetter(0))
        return found, (single, stretch, place)

    def arrays(self) -> Gaps:
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


MERGE_GAPS = 1 << 20
"""So many gaps are gathered before equal ones are merged: a long run has tens of millions, most of them repeated."""


def merged_gaps(logs: list[GapLog]) -> Gaps:
    """All gaps of several workers: distinct values ascending, and how often each occurred.

    The result does not depend on how the gaps were grouped when they were noted, so what is computed from it
    is the same to the bit with and without stretches.
    """
    merged: Gaps = (np.empty(0), np.empty(0, dtype=np.int64))
    gathered = [merged]
    size = 0
    for log in logs:
        gathered.append(log.arrays())
        size += len(gathered[-1][0])
        if size > max(MERGE_GAPS, 2 * len(merged[0])):
            merged = _merge(gathered)
            gathered, size = [merged], len(merged[0])
    return _merge(gathered)


def _merge(pairs: list[Gaps]) -> Gaps:
    """Distinct values ascending, with their counts added up."""
    gaps = np.concatenate([gap for gap, _ in pairs])
    counts = np.concatenate([count for _, count in pairs])
    if not len(gaps):
        return gaps, counts
    order = np.argsort(gaps)  # equal gaps are added up, so their order is free and the fastest sort will do
    gaps, counts = gaps[order], counts[order]
    starts = np.flatnonzero(np.concatenate([[True], gaps[1:] != gaps[:-1]]))
    totals = np.add.reduceat(counts, starts)
    keep = totals > 0
    return gaps[starts][keep], totals[keep]
