"""What is known of a fleet before it runs, for the caveats of policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dynamo_sim.autoscaling.metrics.query import MetricQuery


@dataclass(frozen=True)
class FleetFacts:
    """What is known of a fleet before it runs.

    Attributes:
        max_workers: largest fleet of the scenario; None for no limit.
        ceilings: the largest value one worker can ever show, by metric, where the engine sets one (such as ``running``:
            its largest batch).
        fastest_ms: TTFT and ITL in ms of a request of one token on an idle worker; 0 where that is not known. A
            function, because it may read a profile from a file.
    """

    max_workers: int | None = None
    ceilings: Mapping[str, float] = field(default_factory=dict)
    fastest_ms: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0)

    def ceiling(self, query: MetricQuery, workers: int = 1) -> float | None:
        """The largest answer for one worker, or a sum over ``workers``, in the query's own unit; None for no limit."""
        if query.over not in ("last", "avg") and query.spec.ceiling is None:
            return None
        top = self.ceilings.get(query.metric, query.spec.ceiling)
        if top is None:
            return None
        return top * query.scale * (workers if query.reduce == "sum" and query.spec.per_worker else 1)
