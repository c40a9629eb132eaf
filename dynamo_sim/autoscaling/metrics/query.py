"""A question to the metrics: which one, over what time, put together how (`spec 10, 8.2 and 8.3`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from difflib import get_close_matches

from dynamo_sim.metric_catalogue import METRICS, OVER, Kind, Metric, is_pooled, percentile_of, query_faults
from dynamo_sim.records.readings import Reading, Threshold
from dynamo_sim.scenario.autoscaler.parts import MetricSpec


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
        for name, fault in query_faults(metric, self.over, self.reduce):
            raise ValueError(f"{name}: {fault}")
        if self.reduce == "avg_over_time":
            object.__setattr__(self, "reduce", "avg")
            object.__setattr__(self, "over", "avg")
        if self.over is None:
            object.__setattr__(self, "over", OVER[metric.kind][0])
        if self.reduce is None:
            object.__setattr__(self, "reduce", "merge" if is_pooled(metric) else "avg")
        if self.window_s is not None and not (math.isfinite(self.window_s) and self.window_s > 0):
            raise ValueError(f"a window is a number of seconds above 0, got {self.window_s!r}")
        if not math.isfinite(self.scale):
            raise ValueError(f"a scale is a finite number, got {self.scale!r}")

    @classmethod
    def of(cls, query: MetricQuery | MetricSpec | str) -> MetricQuery:
        """A query as it is, that of a scenario's metric, or the plain query of a metric's name."""
        if isinstance(query, MetricQuery):
            return query
        if isinstance(query, str):
            return cls(query)
        return cls(query.metric, query.over, query.reduce, query.window_s, query.scale)

    @classmethod
    def of_fleet(cls, spec: MetricSpec) -> MetricQuery:
        """That of a scenario's metric that is one number of the whole fleet: the sum, where it does not say how."""
        query = cls.of(spec)
        return replace(query, reduce="sum") if spec.reduce is None and query.reduce == "avg" else query

    @classmethod
    def of_period(cls, spec: MetricSpec, is_total: bool = False) -> MetricQuery:
        """That of an alarm's datapoint: a gauge is its mean over the window, where it does not say otherwise."""
        query = cls.of_fleet(spec) if is_total else cls.of(spec)
        is_plain_gauge = query.spec.kind is Kind.GAUGE and spec.over is None
        return replace(query, over="avg") if is_plain_gauge else query

    @property
    def spec(self) -> Metric:
        """The metric asked for."""
        return METRICS[self.metric]

    @property
    def percent(self) -> float | None:
        """The percentile asked for, from 0 to 100, or None."""
        return percentile_of(self.over)

    @property
    def unit(self) -> str:
        """Of its answers, in words."""
        counts_events = self.spec.kind is Kind.HISTOGRAM and self.over == "rate"
        unit = "observations" if counts_events else self.spec.unit
        if self.over == "rate" and self.spec.kind is not Kind.RATIO:
            unit += "/s"
        if self.scale == 1.0:
            return unit
        return "s" if (unit, self.scale) == ("ms", 0.001) else f"{self.scale:g} × {unit}"

    @property
    def scope(self) -> str:
        """Whether an answer is one of the whole fleet or of its workers; what is pooled is neither."""
        if self.reduce == "merge":
            return ""
        if self.reduce == "sum" or not self.spec.per_worker:
            return "in total"
        return "per worker" if self.reduce == "avg" else f"per worker ({self.reduce})"

    def reading(self, *thresholds: Threshold) -> Reading:
        """What its answers are, for tables and pictures."""
        return Reading(str(self), f"{self.unit} {self.scope}".strip(), thresholds)

    def __str__(self) -> str:
        metric = self.spec
        over = "avg_over_time" if self.over == "avg" else self.over
        inner = self.metric if over == "last" else f"{over}({self.metric})"
        if self.window_s is not None and self.over != "last":
            inner += f"[{self.window_s:g}s]"
        return inner if not metric.per_worker or self.reduce == "merge" else f"{self.reduce} {inner}"
