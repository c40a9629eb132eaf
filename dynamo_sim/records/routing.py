"""What a router decided, request by request, and how evenly it loaded the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.workload.request import Request

Floats = NDArray[np.float64]

LOAD_SAMPLES = 400
"""Times at which the loads of the workers are compared."""


@dataclass(frozen=True, slots=True)
class RoutingDecision:
    """A request was sent to a worker.

    Attributes:
        at_ms: when.
        fleet: name of the fleet of the worker.
        request: the request.
        worker_id: the worker.
        waited_ms: time in the router's queue.
        hit_rate: share of the prompt's blocks that the router took to be cached there; None where it does not know.
        terms: what was weighed, by name, one value for each worker that could have been chosen; ``worker_ids`` says
            which. Empty for a router that weighs nothing.
    """

    at_ms: float
    fleet: str
    request: Request
    worker_id: int
    waited_ms: float
    hit_rate: float | None
    terms: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class LoadSpread:
    """Requests in flight on the workers of one fleet, at `LOAD_SAMPLES` times.

    Attributes:
        at_ms: the times, evenly spread over the run.
        mean: requests in flight, by worker that serves or drains.
        most: requests in flight on the worker that has most.
    """

    at_ms: Floats
    mean: Floats
    most: Floats

    @classmethod
    def of(
        cls, decisions: Sequence[RoutingDecision], workers: Sequence[tuple[float, int]], end_ms: float
    ) -> LoadSpread:
        """The loads that decisions about one fleet brought.

        Args:
            decisions: the decisions, in order.
            workers: number of workers that serve or drain, from each time on in ms.
            end_ms: the end of the run.
        """
        at_ms: Floats = np.linspace(0.0, end_ms, LOAD_SAMPLES, endpoint=False) + end_ms / LOAD_SAMPLES / 2.0
        spans: dict[int, tuple[list[float], list[float]]] = {}
        for decision in decisions:
            ended_ms = decision.request.ended_ms
            starts, ends = spans.setdefault(decision.worker_id, ([], []))
            starts.append(decision.at_ms)
            ends.append(end_ms if ended_ms is None else ended_ms)
        loads = [
            np.searchsorted(np.array(starts), at_ms, "right") - np.searchsorted(np.sort(ends), at_ms, "right")
            for starts, ends in spans.values()
        ]
        by_worker = np.array(loads, dtype=np.float64).reshape(-1, LOAD_SAMPLES)
        place = np.searchsorted([since_ms for since_ms, _ in workers], at_ms, "right") - 1
        there = np.maximum(np.array([count for _, count in workers], dtype=np.float64)[place], 1.0)
        return cls(at_ms, by_worker.sum(axis=0) / there, by_worker.max(axis=0, initial=0.0))

    @property
    def imbalance(self) -> float:
        """Load of the worker that has most, in parts of the mean load, averaged over the run; 1 where all are even.

        Times are weighted with the requests in flight; 0.0 without any.
        """
        total = float(self.mean.sum())
        return float(self.most.sum()) / total if total else 0.0


def mean_hit_rate(decisions: Sequence[RoutingDecision]) -> float | None:
    """Mean over the decisions of a router that knows what is cached; None without one."""
    rates = [decision.hit_rate for decision in decisions if decision.hit_rate is not None]
    return float(np.mean(rates)) if rates else None
