"""What the pipeline needs of the fleet: samples of a worker, and what it has observed since the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Observations:
    """Observations of a histogram.

    Attributes:
        at_s: when each was made, in any order.
        values: in ms.
        counts: how often each value occurred at that time; None stands for once.
    """

    at_s: Floats
    values: Floats
    counts: NDArray[np.int64] | None = None


class Sampler(Protocol):
    """The truth. Names are those of the catalogue; counters only grow, from 0 at a worker's start."""

    def sample(self, worker_id: int, now_s: float, names: Sequence[str]) -> Mapping[str, float] | None:
        """Gauges and counters of a worker that exists; None when it does not answer.

        A name the fleet cannot provide may be left out; a query for it is then an error.
        """

    def sample_fleet(self, now_s: float, names: Sequence[str]) -> Mapping[str, float]:
        """The same of the frontend queue."""

    def observations(self, worker_id: int, metric: str, since_s: float, until_s: float) -> Observations:
        """What a worker has observed after ``since_s`` and up to ``until_s``.

        Each observation may be handed out only once: one pipeline reads a histogram, and at rising times.
        """

    def bridge(self, now_s: float) -> Mapping[str, Any]:
        """Passes and traffic since the last call (`spec 10, 6.1`)."""
