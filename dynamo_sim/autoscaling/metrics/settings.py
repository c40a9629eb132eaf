"""How metrics get from the workers to a controller (`spec 10, 8.1`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dynamo_sim.autoscaling.metrics.catalogue import HISTOGRAMS


@dataclass(frozen=True)
class MetricsSettings:
    """Times in seconds.

    Attributes:
        scrape_interval_s: between two scrapes of a worker.
        scrape_aligned: whether all are scraped together; else each at an offset of its own.
        scrape_delay_s: from a scrape until it is visible.
        window_s: of queries that do not say their own.
        query_interval_s: how long an answer is given again before it is computed anew.
        lookback_s: how old a sample an instant query still takes.
        scrape_while_loading: whether a worker is scraped before it is ready.
        staleness_markers: whether the series of a worker that is gone, or did not answer, ends at that scrape.
        perfect: skip all of that: exact values at the decision.
        buckets: upper bounds in ms of the buckets of a histogram, by metric; those without are exact.

    Raises:
        ValueError: a value makes no sense.
    """

    scrape_interval_s: float = 15.0
    scrape_aligned: bool = False
    scrape_delay_s: float = 0.0
    window_s: float = 60.0
    query_interval_s: float = 0.0
    lookback_s: float = 300.0
    scrape_while_loading: bool = False
    staleness_markers: bool = False
    perfect: bool = False
    buckets: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("scrape_interval_s", "window_s", "lookback_s"):
            if not (getattr(self, name) > 0 and math.isfinite(getattr(self, name))):
                raise ValueError(f"{name} is a number of seconds above 0, got {getattr(self, name)!r}")
        for name in ("scrape_delay_s", "query_interval_s"):
            if not (getattr(self, name) >= 0 and math.isfinite(getattr(self, name))):
                raise ValueError(f"{name} is a number of seconds from 0, got {getattr(self, name)!r}")
        for metric, bounds in self.buckets.items():
            if metric not in HISTOGRAMS:
                raise ValueError(f"buckets: {metric!r} is no histogram, only {', '.join(HISTOGRAMS)}")
            if not bounds or any(not math.isfinite(bound) for bound in bounds):
                raise ValueError(
                    f"buckets of {metric}: at least one finite bound (the last bucket is open by itself)"
                )
            if list(bounds) != sorted(set(bounds)):
                raise ValueError(f"buckets of {metric}: bounds must rise")
