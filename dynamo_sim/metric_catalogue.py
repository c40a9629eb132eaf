"""The metrics a controller can ask for (`spec 10, 8.2`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """How a metric is recorded, and so what can be asked of it."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    RATIO = "ratio"
    """Increase of one counter for each unit of another."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: how policies call it.
        kind: what can be asked of it.
        unit: of its values; times are in ms.
        per_worker: whether every worker has its own; else there is one for the whole fleet.
        columns: what has to be sampled for it: names of gauges and counters.
        ceiling: the largest value one worker can ever show, where the metric itself sets one.
    """

    name: str
    kind: Kind
    unit: str
    per_worker: bool = True
    columns: tuple[str, ...] = ()
    ceiling: float | None = None


def _gauge(name: str, unit: str, per_worker: bool = True, ceiling: float | None = None) -> Metric:
    return Metric(name, Kind.GAUGE, unit, per_worker, (name,), ceiling)


def _counter(name: str, unit: str, per_worker: bool = True) -> Metric:
    return Metric(name, Kind.COUNTER, unit, per_worker, (name,))


def _histogram(name: str) -> Metric:
    return Metric(name, Kind.HISTOGRAM, "ms")


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        _gauge("in_flight", "requests"),
        _gauge("running", "requests"),
        _gauge("waiting", "requests"),
        _gauge("kv_usage", "share", ceiling=1.0),
        _gauge("active_decode_blocks", "blocks"),
        _gauge("active_prefill_tokens", "tokens"),
        _gauge("router_queue", "requests", per_worker=False),
        _gauge("active_workers", "workers", per_worker=False),
        _counter("requests_started", "requests"),
        _counter("requests_finished", "requests"),
        _counter("prompt_tokens", "tokens"),
        _counter("generated_tokens", "tokens"),
        _counter("preemptions", "preemptions"),
        _counter("prefix_hits", "tokens"),
        _counter("prefix_queries", "tokens"),
        _counter("busy_s", "seconds in a pass"),
        _counter("in_flight_s", "request-seconds"),
        _counter("router_queue_s", "request-seconds", per_worker=False),
        Metric("busy", Kind.RATIO, "share", columns=("busy_s",), ceiling=1.0),
        Metric(
            "prefix_hit_rate", Kind.RATIO, "share", columns=("prefix_hits", "prefix_queries"), ceiling=1.0
        ),
        _histogram("ttft"),
        _histogram("itl"),
        _histogram("tpot"),
        _histogram("e2e"),
        _histogram("queue_time"),
    )
}
"""All metrics by name. ``busy`` is the share of the window spent in passes."""

WORKER_GAUGES = tuple(m.name for m in METRICS.values() if m.kind is Kind.GAUGE and m.per_worker)
"""What a worker is sampled for: values that go up and down."""

WORKER_COUNTERS = tuple(m.name for m in METRICS.values() if m.kind is Kind.COUNTER and m.per_worker)
"""What a worker is sampled for: values that only grow, from 0 at its start."""

FLEET_GAUGES = tuple(m.name for m in METRICS.values() if m.kind is Kind.GAUGE and not m.per_worker)
"""What the frontend queue is sampled for: values that go up and down."""

FLEET_COUNTERS = tuple(m.name for m in METRICS.values() if m.kind is Kind.COUNTER and not m.per_worker)
"""What the frontend queue is sampled for: values that only grow."""

HISTOGRAMS = tuple(m.name for m in METRICS.values() if m.kind is Kind.HISTOGRAM)
"""Metrics of which every observation counts, not a value at a time."""

OVER = {
    Kind.GAUGE: ("last", "avg"),
    Kind.COUNTER: ("rate", "increase"),
    Kind.RATIO: ("rate",),
    Kind.HISTOGRAM: ("mean", "rate"),
}
"""Ways to make one number of a worker's window, the default first; a histogram also takes ``p95`` and the like."""

REDUCTIONS = ("sum", "avg", "max", "min", "merge")
"""Ways to make one number of many workers; ``merge`` pools the observations of a histogram or the parts of a ratio."""

_PERCENTILE = re.compile(r"p(\d{1,2}(\.\d+)?|100)")


def percentile_of(over: str | None) -> float | None:
    """The percentile that a word such as ``p95`` or ``p99.9`` stands for, from 0 to 100; None for any other word."""
    return float(over[1:]) if over is not None and _PERCENTILE.fullmatch(over) else None


def is_pooled(metric: Metric) -> bool:
    """Whether workers are put together by pooling what was observed, not by adding up numbers."""
    return metric.kind in (Kind.HISTOGRAM, Kind.RATIO)


def query_faults(metric: Metric, over: str | None, reduce: str | None) -> Iterator[tuple[str, str]]:
    """Ways in which a metric cannot be asked for: ``over`` or ``reduce``, and what is wrong with it.

    Args:
        metric: what is asked for.
        over, reduce: as in a `MetricQuery`; None for the default.
    """
    kind = metric.kind
    if over is not None and over not in OVER[kind]:
        is_histogram = kind is Kind.HISTOGRAM
        if not (is_histogram and percentile_of(over) is not None):
            words = [*OVER[kind], *(("a percentile such as p95",) if is_histogram else ())]
            yield "over", f"found {over!r}; must be {' or '.join(words)} for {metric.name}, a {kind.value}"
    if reduce is None:
        return
    possible = {
        "avg_over_time": kind is Kind.GAUGE,
        "merge": is_pooled(metric),
        **dict.fromkeys(("sum", "avg", "max", "min"), True),
    }
    if not possible.get(reduce, False):
        words = [word for word, is_possible in possible.items() if is_possible]
        yield (
            "reduce",
            f"found {reduce!r}; is not possible for {metric.name}, a {kind.value}: only {', '.join(words)}",
        )
