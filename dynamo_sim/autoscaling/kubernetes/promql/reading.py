"""A pasted PromQL query as a question to our metrics (`spec 10, 8.4`)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from dynamo_sim.autoscaling.kubernetes.promql.names import NamedSeries, find_series
from dynamo_sim.autoscaling.kubernetes.promql.tree import (
    Aggregation,
    Binary,
    Call,
    Number,
    OrZero,
    Selector,
    Tree,
    Unmapped,
    parse_tree,
)
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.metric_catalogue import METRICS, Kind

WORKER_LABELS = {
    "pod",
    "pod_name",
    "instance",
    "worker",
    "worker_id",
    "container",
    "container_id",
    "node",
    "engine",
}
"""Labels by which workers differ; grouping by any other leaves one series for the fleet."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """A query, understood.

    Attributes:
        query: what is asked of our metrics.
        per_worker: whether the result is a series a worker (an HPA ``Pods`` metric), not one number.
        notes: what of the query has no effect here.
        or_zero: whether it gives 0 where there is no data.
    """

    query: MetricQuery
    per_worker: bool = False
    notes: tuple[str, ...] = ()
    or_zero: bool = False


@dataclass(frozen=True, slots=True)
class _Vector:
    """A partial result: a series, what was done over time, and how workers were put together."""

    series: NamedSeries
    over: str | None = None
    window_s: float | None = None
    reduce: str | None = None
    percent: float | None = None
    scale: float = 1.0
    or_zero: bool = False

    @property
    def shape(self) -> tuple[object, ...]:
        """What two sides of an operator must have in common."""
        return self.over, self.window_s, self.reduce, self.series.pooled, self.scale


def parse_promql(text: str) -> Mapped:
    """Map a query by its metric name, its functions and its range.

    Raises:
        ValueError: an unknown metric, or a construct that has no counterpart; names it.
    """
    notes: list[str] = []
    lowered = _lower(parse_tree(text), notes)
    if isinstance(lowered, float):
        raise Unmapped(f"the query is the number {lowered:g} and reads no metric")
    query, per_worker = _question(lowered)
    return Mapped(query, per_worker, tuple(dict.fromkeys(notes)), lowered.or_zero)


def ends_in_zero(text: str) -> bool:
    """Whether a query, which need not be understood, gives 0 where there is no data."""
    return re.search(r"\bor\s+vector\s*\(\s*0+(\.0*)?\s*\)[\s)]*$", text) is not None


def _lower(tree: Tree, notes: list[str]) -> _Vector | float:
    match tree:
        case Number(value):
            return value
        case Selector():
            if tree.range_s is not None:
                raise Unmapped(
                    f"{tree.name}[...] outside of rate(), increase() or avg_over_time() is not understood"
                )
            return _select(tree, notes)
        case Call("histogram_quantile", arguments):
            return _quantile(arguments, notes)
        case Call(function, arguments):
            return _over_time(function, arguments, notes)
        case Aggregation():
            return _aggregate(tree, notes)
        case OrZero(inner):
            return _or_zero(_lower(inner, notes), notes)
        case Binary():
            return _combine(tree.operator, _lower(tree.left, notes), _lower(tree.right, notes))


def _select(selector: Selector, notes: list[str]) -> _Vector:
    series = find_series(selector.name)
    if series is None:
        raise Unmapped(f"there is no counterpart of the metric {selector.name}")
    if selector.labels.strip("{} \t\n"):
        notes.append(f"the label selectors {selector.labels} of {selector.name} are ignored")
    return _Vector(series, scale=series.scale)


def _over_time(function: str, arguments: tuple[Tree, ...], notes: list[str]) -> _Vector:
    inner = arguments[0]
    if len(arguments) != 1 or not isinstance(inner, Selector) or inner.range_s is None:
        raise Unmapped(f"{function}() of anything but a metric with a range is not understood")
    vector = _select(inner, notes)
    kind = METRICS[vector.series.metric].kind
    if function == "avg_over_time":
        if kind is not Kind.GAUGE:
            raise Unmapped(f"avg_over_time() of {inner.name}, which is no gauge, is not understood")
        return replace(vector, over="avg", window_s=inner.range_s)
    if kind is not Kind.COUNTER and not vector.series.part:
        raise Unmapped(f"{function}() of {inner.name}, which is no counter, is not understood")
    return replace(vector, over=function, window_s=inner.range_s)


def _quantile(arguments: tuple[Tree, ...], notes: list[str]) -> _Vector:
    if len(arguments) != 2 or not isinstance(arguments[0], Number) or not 0 <= arguments[0].value <= 1:
        raise Unmapped("histogram_quantile() without a number from 0 to 1 is not understood")
    vector = _lower(arguments[1], notes)
    if isinstance(vector, float) or vector.series.part != "bucket":
        raise Unmapped("histogram_quantile() of anything but a _bucket metric is not understood")
    if vector.over is None:
        raise Unmapped("histogram_quantile() without rate() or increase() is not understood")
    if vector.reduce not in (None, "sum"):
        raise Unmapped(f"histogram_quantile() of {vector.reduce}() is not understood")
    pooled = "merge" if vector.reduce == "sum" else None
    return replace(
        vector,
        series=replace(vector.series, part=""),
        over=None,
        reduce=pooled,
        percent=round(arguments[0].value * 100, 6),
    )


def _aggregate(tree: Aggregation, notes: list[str]) -> _Vector:
    vector = _lower(tree.inner, notes)
    if isinstance(vector, float):
        raise Unmapped(f"{tree.operator}() of a number is not understood")
    others = [label for label in tree.labels if label != "le"]
    if tree.grouping == "without" and not WORKER_LABELS & set(tree.labels):
        notes.append(f"{tree.operator} without ({', '.join(tree.labels)}) leaves one series a worker")
        return vector
    if tree.grouping == "by" and WORKER_LABELS & set(others):
        return vector
    if others:
        notes.append(
            f"{tree.operator} {tree.grouping} ({', '.join(others)}) is read as one series for the fleet"
        )
    return vector if vector.reduce is not None else replace(vector, reduce=tree.operator)


def _or_zero(vector: _Vector | float, notes: list[str]) -> _Vector:
    if isinstance(vector, float):
        raise Unmapped("or vector(0) behind a number is not understood")
    if vector.percent is not None:
        notes.append("or vector(0) is ignored: a histogram_quantile of nothing is NaN, which is a value")
        return vector
    if vector.reduce is None:
        raise Unmapped("or vector(0) adds a series beside those of the workers; write sum(...) or vector(0)")
    return replace(vector, or_zero=True)


def _combine(operator: str, left: _Vector | float, right: _Vector | float) -> _Vector | float:
    if isinstance(left, float) and isinstance(right, float):
        return _constant(operator, left, right)
    for factor in (left, right):
        if isinstance(factor, float) and operator in ("*", "/") and not 0 < factor < math.inf:
            raise Unmapped(f"a factor of {factor:g} is not understood")
    if isinstance(left, float) and isinstance(right, _Vector) and operator == "*":
        return replace(right, scale=right.scale * left)
    if isinstance(right, float) and isinstance(left, _Vector) and operator in ("*", "/"):
        return replace(left, scale=left.scale * right if operator == "*" else left.scale / right)
    if isinstance(left, float) or isinstance(right, float):
        raise Unmapped(f"{operator!r} with a number is not understood here")
    if (
        operator == "+"
        and {left.series.metric, right.series.metric} == {"running", "waiting"}
        and _alike(left, right)
    ):
        both = left.or_zero and right.or_zero
        return replace(left, series=replace(left.series, metric="in_flight"), or_zero=both)
    parts = left.series.metric, right.series.metric
    if operator == "/" and parts == ("prefix_hits", "prefix_queries") and _alike(left, right):
        return _ratio(left, "prefix_hit_rate", None)
    same = parts[0] == parts[1] and (left.series.part, right.series.part) == ("sum", "count")
    if operator == "/" and same and _alike(left, right):
        return _ratio(left, parts[0], "mean")
    raise Unmapped(f"{operator!r} between {parts[0]} and {parts[1]} is not understood")


def _alike(left: _Vector, right: _Vector) -> bool:
    return left.shape == right.shape and left.percent is None and right.percent is None


def _ratio(vector: _Vector, metric: str, over: str | None) -> _Vector:
    if vector.over is None:
        raise Unmapped("a quotient of counters without rate() or increase() is not understood")
    if vector.reduce not in (None, "sum"):
        raise Unmapped(f"a quotient of two {vector.reduce}() is not understood")
    pooled = "merge" if vector.reduce == "sum" else None
    return replace(
        vector,
        series=replace(vector.series, metric=metric, part=""),
        over=over or "rate",
        reduce=pooled,
        or_zero=False,  # 0 by nothing, or by 0, is no number
    )


def _constant(operator: str, left: float, right: float) -> float:
    if operator == "/" and right == 0:
        raise Unmapped("a division by 0 is not understood")
    return {"+": left + right, "-": left - right, "*": left * right, "/": left / right if right else 0.0}[
        operator
    ]


def _question(vector: _Vector) -> tuple[MetricQuery, bool]:
    series = vector.series
    metric = METRICS[series.metric]
    over, scale = vector.over, vector.scale
    if metric.kind is Kind.HISTOGRAM:
        if vector.percent is not None:
            over = f"p{vector.percent:.10g}"
        elif series.part == "count" and over is not None:
            scale = scale / series.scale * (1.0 if over == "rate" else vector.window_s or 1.0)
            over = "rate"
        elif over != "mean":
            what = (
                f"the {series.part} of a histogram alone"
                if series.part
                else "a histogram without histogram_quantile()"
            )
            raise Unmapped(f"{what} is not understood")
    elif metric.kind is Kind.COUNTER and over is None:
        raise Unmapped("a counter without rate() or increase() is not understood")
    reduce = vector.reduce
    pooled = metric.kind in (Kind.HISTOGRAM, Kind.RATIO)
    counted = metric.kind is Kind.HISTOGRAM and over == "rate"
    if counted and reduce == "merge":
        reduce = "sum"
    if series.pooled or not metric.per_worker:
        reduce = "merge" if pooled and not counted else series.pooled or "sum"
    per_worker = reduce is None
    return MetricQuery(series.metric, over, reduce, vector.window_s, scale), per_worker
