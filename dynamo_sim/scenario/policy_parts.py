"""What scaling policies are made of: questions to the metrics, and what all policies have in common (spec 10, 8)."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from dynamo_sim.scenario.base import CheckedSpec, Path, Problems, Spec
from dynamo_sim.sizes import LARGEST_SCALE, LEAST_PER_WORKER, MOST_WORKERS

Positive = Annotated[float, Field(gt=0)]

PerWorker = Annotated[float, Field(ge=LEAST_PER_WORKER)]
"""How much of a metric one worker is to have."""

Workers = Annotated[int, Field(ge=0, le=MOST_WORKERS)]
"""Workers of a fleet."""

FIRST_YEAR, LAST_YEAR = 1900, 2999
"""Calendars of time zones make no sense far from today."""

GaugeName = Literal[
    "in_flight",
    "running",
    "waiting",
    "kv_usage",
    "active_decode_blocks",
    "active_prefill_tokens",
    "router_queue",
    "active_workers",
]
CounterName = Literal[
    "requests_started",
    "requests_finished",
    "prompt_tokens",
    "generated_tokens",
    "preemptions",
    "prefix_hits",
    "prefix_queries",
    "busy_s",
    "in_flight_s",
    "router_queue_s",
]
RatioName = Literal["busy", "prefix_hit_rate"]
HistogramName = Literal["ttft", "itl", "tpot", "e2e", "queue_time"]
MetricName = Literal[GaugeName, CounterName, RatioName, HistogramName]
"""The metrics of `dynamo_sim.autoscaling.metrics.catalogue`, by their kinds."""

_OVER_BY_KIND: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("gauge", GaugeName, ("last", "avg")),
    ("counter", CounterName, ("rate", "increase")),
    ("ratio", RatioName, ("rate",)),
    ("histogram", HistogramName, ("mean", "rate")),
)

_PERCENTILE = re.compile(r"p(\d{1,2}(\.\d+)?|100)")


def _checked_moment(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("must be a date and time such as 2025-01-06T08:00:00+00:00") from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise ValueError(f"must be in the years {FIRST_YEAR} to {LAST_YEAR}")
    return text


Moment = Annotated[str, AfterValidator(_checked_moment)]
"""A moment of the wall clock."""


def _checked_expression(text: str) -> str:
    from dynamo_sim.cron import check_expression

    with suppress(ImportError):  # told when the policy is built
        check_expression(text)
    return text


def _checked_zone(text: str) -> str:
    from dynamo_sim.cron import time_zone

    time_zone(text)
    return text


CronExpression = Annotated[str, AfterValidator(_checked_expression)]
"""A cron expression of five fields."""

TimeZone = Annotated[str, AfterValidator(_checked_zone)]
"""An IANA name of a time zone."""


class Metric(Spec):
    """A question to the metrics: which one, over what time, put together how."""

    metric: MetricName
    """The metric; times are in ms."""

    over: str | None = None
    """Within a worker's window: last, avg (gauges); rate, increase (counters); mean, p95 ... (latencies)."""

    reduce: Literal["sum", "avg", "max", "min", "merge", "avg_over_time"] | None = None
    """Over the workers; merge pools the observations of latencies. null = merge for those, else avg."""

    window_s: Positive | None = None
    """Length of the window; null = that of the metrics section."""

    scale: Annotated[float, Field(ge=-LARGEST_SCALE, le=LARGEST_SCALE)] = 1.0
    """Every value is multiplied by it."""

    @model_validator(mode="after")
    def _check_query(self) -> Metric:
        kind, _, over = next(entry for entry in _OVER_BY_KIND if self.metric in get_args(entry[1]))
        pooled = kind in ("histogram", "ratio")
        found: list[tuple[Path, str]] = []
        percentile = kind == "histogram" and self.over is not None and _PERCENTILE.fullmatch(self.over)
        if self.over is not None and self.over not in over and not percentile:
            words = [*over, *(("a percentile such as p95",) if kind == "histogram" else ())]
            found.append(
                (("over",), f"found {self.over!r}; must be {' or '.join(words)} for {self.metric}, a {kind}")
            )
        if self.reduce == "merge" and not pooled:
            found.append((("reduce",), f"found 'merge'; is not possible for {self.metric}, a {kind}"))
        if self.reduce == "avg_over_time" and kind != "gauge":
            found.append((("reduce",), f"found 'avg_over_time'; is not possible for {self.metric}, a {kind}"))
        if found:
            raise Problems(found)
        return self


AnyMetric = Annotated[
    Metric, BeforeValidator(lambda value: {"metric": value} if isinstance(value, str) else value)
]
"""A metric, or just its name."""


class PolicySpec(CheckedSpec):
    """What all policies have in common."""
