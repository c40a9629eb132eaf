"""Quantities that keep a value until something changes it: queue lengths, workers, memory in use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Level:
    """A step function of time: ``values[i]`` from ``at_ms[i]`` on, 0 before the first.

    Attributes:
        at_ms: times of the changes, strictly ascending.
        values: as many values.
    """

    at_ms: Floats
    values: Floats

    @classmethod
    def of_changes(cls, at_ms: ArrayLike, changes: ArrayLike) -> Level:
        """Add up ``changes`` (exact for whole numbers), in any order; those of one instant happen together."""
        times, deltas = np.asarray(at_ms, dtype=np.float64), np.asarray(changes, dtype=np.float64)
        order = np.argsort(times)
        return cls.of_values(times[order], np.cumsum(deltas[order]))

    @classmethod
    def of_values(cls, at_ms: ArrayLike, values: ArrayLike) -> Level:
        """From times in ascending order; of several values of one instant the last one holds."""
        times, found = np.asarray(at_ms, dtype=np.float64), np.asarray(values, dtype=np.float64)
        last = np.ones(len(times), dtype=bool)
        last[:-1] = times[1:] != times[:-1]
        return cls(times[last], found[last])

    @classmethod
    def of_spans(cls, start_ms: Floats, end_ms: Floats, heights: ArrayLike) -> Level:
        """The sum of spans of time, each of which has its height from its start to its end."""
        height = np.broadcast_to(np.asarray(heights, dtype=np.float64), start_ms.shape)
        return cls.of_changes(np.concatenate([start_ms, end_ms]), np.concatenate([height, -height]))

    def at(self, time_ms: Floats) -> Floats:
        """Values at the given times."""
        padded = np.concatenate([[0.0], self.values])
        return padded[np.searchsorted(self.at_ms, time_ms, side="right")]

    def means(self, edges_ms: Floats) -> Floats:
        """Mean over time between each two neighbouring edges (strictly ascending)."""
        if not len(self.at_ms):
            return np.zeros(len(edges_ms) - 1)
        areas = np.concatenate([[0.0], np.cumsum(np.diff(self.at_ms) * self.values[:-1])])
        upto = np.interp(edges_ms, self.at_ms, areas)  # a straight line between changes is exact
        upto += np.maximum(edges_ms - self.at_ms[-1], 0.0) * self.values[-1]
        return np.diff(upto) / np.diff(edges_ms)

    def peaks(self, edges_ms: Floats) -> Floats:
        """Largest value between each two neighbouring edges, of what holds for a while."""
        highest = self.at(edges_ms[:-1])
        bins = np.searchsorted(edges_ms, self.at_ms, side="right") - 1
        inside = (bins >= 0) & (bins < len(highest))
        np.maximum.at(highest, bins[inside], self.values[inside])
        return highest
