"""A question to the metrics: which one, over what time, put together how (`spec 10, 8.2 and 8.3`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from difflib import get_close_matches

from dynamo_sim.autoscaling.metrics.catalogue import METRICS, Kind, Metric

REDUCTIONS = ("sum", "avg", "max", "min", "merge")
"""Ways to make one number of many workers; ``merge`` pools the observations of a histogram."""

OVER = {
    Kind.GAUGE: ("last", "avg"),
    Kind.COUNTER: ("rate", "increase"),
    Kind.RATIO: ("rate",),
    Kind.HISTOGRAM: ("mean", "rate"),
}
"""Ways to make one number of a worker's window, the default first; a histogram also takes ``p95`` and the like."""


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """What a policy wants to know.

    Args:
        metric: name of a metric of the catalogue.
        over: within a worker's window: ``last``, ``avg`` (gauges); ``rate``, ``increase`` (counters; rates are per
            second); ``mean``, ``rate`` or a percentile as ``p95`` or ``p99.9`` (histograms; their rate counts
            observations). None for the default of the metric's kind.
        reduce: over the workers: ``sum``, ``avg``, ``max``, ``min``, and for histograms ``merge``; ``avg_over_time`` is
            short for the mean over the window of each worker and the mean of those. None: ``merge`` for histograms and
            ratios, else ``avg``.
        window_s: length of the window in seconds; None for that of the metrics section.
        scale: every value is multiplied by it.

    Raises:
        ValueError: no such metric, or it cannot be asked for this way.
    """

    metric: str
    over: str | None = None
    reduce: str | None = None
    window_s: float | None = None
    scale: float = 1.0

    def __post_init__(self) -> None:
        metric = METRICS.get(self.metric)
        if metric is None:
            near = get_close_matches(self.metric, METRICS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(METRICS)}"
            raise ValueError(f"there is no metric {self.metric!r}{hint}")
        if self.reduce == "avg_over_time":
            object.__setattr__(self, "reduce", "avg")
            object.__setattr__(self, "over", "avg")
        if self.over is None:
            object.__setattr__(self, "over", OVER[metric.kind][0])
        elif self.over not in OVER[metric.kind] and not (
            metric.kind is Kind.HISTOGRAM and self.percent is not None
        ):
            extra = ", p50, p90, p95, p99" if metric.kind is Kind.HISTOGRAM else ""
            raise ValueError(
                f"{self.metric} is a {metric.kind.value}: it cannot be asked for {self.over!r}, only for "
                f"{', '.join(OVER[metric.kind])}{extra}"
            )
        pooled = metric.kind in (Kind.HISTOGRAM, Kind.RATIO)
        if self.reduce is None:
            object.__setattr__(self, "reduce", "merge" if pooled else "avg")
        elif self.reduce not in REDUCTIONS or (self.reduce == "merge" and not pooled):
            allowed = ", ".join(word for word in REDUCTIONS if pooled or word != "merge")
            raise ValueError(f"{self.metric} cannot be reduced by {self.reduce!r}, only by {allowed}")
        if self.window_s is not None and not (math.isfinite(self.window_s) and self.window_s > 0):
            raise ValueError(f"a window is a number of seconds above 0, got {self.window_s!r}")
        if not math.isfinite(self.scale):
            raise ValueError(f"a scale is a finite number, got {self.scale!r}")

    @classmethod
    def of(cls, query: MetricQuery | str) -> MetricQuery:
        """A query as it is, or the plain query of a metric's name."""
        return query if isinstance(query, MetricQuery) else cls(query)

    @property
    def spec(self) -> Metric:
        """The metric asked for."""
        return METRICS[self.metric]

    @property
    def percent(self) -> float | None:
        """The percentile asked for, from 0 to 100, or None."""
        if self.over is None or not self.over.startswith("p"):
            return None
        try:
            percent = float(self.over[1:])
        except ValueError:
            return None
        return percent if 0 <= percent <= 100 else None

    def __str__(self) -> str:
        metric = self.spec
        inner = self.metric if self.over == "last" else f"{self.over}({self.metric})"
        if self.window_s is not None and self.over != "last":
            inner += f"[{self.window_s:g}s]"
        return inner if not metric.per_worker or self.reduce == "merge" else f"{self.reduce} {inner}"
