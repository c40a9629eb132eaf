"""Mean, extremes, percentiles and deviation of values that may each stand for several (`spec 09, 3`)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

PERCENTILES = {"median": 50, "p75": 75, "p90": 90, "p95": 95, "p99": 99}
"""Name and percent of the reported percentiles."""

STATISTICS = ("mean", "min", "max", *PERCENTILES, "std")
"""Names of the statistics of a distribution, in the order of the report."""


def nearest_rank(count: int, percent: float) -> int:
    """Place, from 0, of a percentile among ``count`` sorted values; halves are rounded up.

    Args:
        count: number of values, at least 1.
        percent: from 0 to 100.
    """
    return math.floor((count - 1) * percent / 100 + 0.5)


def percentiles(values: NDArray[np.float64], percents: tuple[float, ...]) -> list[float]:
    """Percentiles of at least one unsorted value: each is a value that occurred, none is interpolated."""
    ordered = np.sort(values)
    return [float(ordered[nearest_rank(len(ordered), percent)]) for percent in percents]


def statistics(values: NDArray[np.float64], counts: NDArray[np.int64] | None = None) -> dict[str, float]:
    """The statistics of the report, by name.

    Args:
        values: without NaN, repeated ones are fine; in any order, but ascending when there are ``counts``.
        counts: how often each value occurred, at least once; None stands for once each.

    Returns:
        A float for each of `STATISTICS`; all 0.0 when there is no value. The deviation is that of a
        population. Sums run over ascending values, so the order in which they are given changes no bit.
    """
    if not len(values):
        return dict.fromkeys(STATISTICS, 0.0)
    if counts is None:
        ordered = np.sort(values)
        number = len(ordered)
        mean = float(ordered.sum()) / number
        squares = float(((ordered - mean) ** 2).sum())
        places = [nearest_rank(number, percent) for percent in PERCENTILES.values()]
    else:
        ordered, upto = values, np.cumsum(counts)
        number = int(upto[-1])
        mean = float((ordered * counts).sum()) / number
        squares = float((counts * (ordered - mean) ** 2).sum())
        ranks = [nearest_rank(number, percent) for percent in PERCENTILES.values()]
        places = np.searchsorted(upto, ranks, side="right").tolist()
    found = [float(ordered[place]) for place in places]
    ends = float(ordered[0]), float(ordered[-1])
    return dict(zip(STATISTICS, [mean, *ends, *found, math.sqrt(squares / number)], strict=True))
