"""Observations of a window, and percentiles of them, exact or by buckets (`spec 10, 8.2`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.autoscaling.metrics.sampler import Observations
from dynamo_sim.records.percentiles import nearest_rank

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class ObservationLog:
    """What one worker has observed of one metric, as far as it has been scraped."""

    def __init__(self) -> None:
        self._chunks: list[tuple[Floats, Floats, Counts]] = []

    def add(self, observed: Observations, keep_from_s: float) -> None:
        """Add observations, forgetting those older than ``keep_from_s``."""
        while self._chunks and self._chunks[0][0].max() < keep_from_s:
            del self._chunks[0]
        if len(observed.at_s):
            counts = observed.counts
            once = np.ones(len(observed.at_s), dtype=np.int64) if counts is None else counts
            self._chunks.append((observed.at_s, observed.values, once))

    def between(self, after_s: float, until_s: float) -> tuple[Floats, Counts]:
        """Values and counts of what was observed after one time and up to another."""
        values, counts = [np.empty(0)], [np.empty(0, dtype=np.int64)]
        for at, value, count in self._chunks:
            inside = (at > after_s) & (at <= until_s)
            values.append(value[inside])
            counts.append(count[inside])
        return np.concatenate(values), np.concatenate(counts)


def exact_percentile(values: Floats, counts: Counts, percent: float) -> float | None:
    """A value that was observed, as in the reports; None without any."""
    total = int(counts.sum())
    if total == 0:
        return None
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(counts[order])
    return float(values[order][np.searchsorted(upto, nearest_rank(total, percent), side="right")])


def bucket_percentile(
    values: Floats, counts: Counts, percent: float, bounds: tuple[float, ...]
) -> float | None:
    """What ``histogram_quantile`` makes of it: a straight line inside the bucket, the last bound beyond it."""
    limits = np.asarray(bounds, dtype=np.float64)
    held = np.bincount(
        np.searchsorted(limits, values, side="left"), weights=counts, minlength=len(limits) + 1
    )
    upto = np.cumsum(held)
    total = upto[-1]
    if total == 0:
        return None
    rank = percent / 100 * total
    bucket = int(np.searchsorted(upto, rank, side="left"))
    if bucket >= len(limits):
        return float(limits[-1])
    if bucket == 0 and limits[0] <= 0:
        return float(limits[0])
    low = limits[bucket - 1] if bucket else 0.0
    before = upto[bucket - 1] if bucket else 0.0
    if held[bucket] == 0:
        return float(limits[bucket])
    return float(low + (limits[bucket] - low) * (rank - before) / held[bucket])


def mean(values: Floats, counts: Counts) -> float | None:
    """The mean; None without any."""
    total = int(counts.sum())
    return float((values * counts).sum()) / total if total else None
