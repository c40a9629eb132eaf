"""The line of ``metric_map`` that a person has to write where a metric of a manifest has no counterpart."""

from __future__ import annotations

import json
import re

from dynamo_sim.autoscaling.kubernetes.manifests.section import duration_s
from dynamo_sim.autoscaling.kubernetes.promql.names import find_series
from dynamo_sim.autoscaling.metrics.catalogue import METRICS, Kind

USUAL_METRIC = "waiting"
USUAL_WINDOW_S = 60.0
_PLAIN = re.compile(r"[A-Za-z_][\w:]*\w")


def map_line(key: str, metric: str = USUAL_METRIC, window_s: float = USUAL_WINDOW_S) -> str:
    """``metric_map: {KEY: {metric: ..., reduce: ..., window_s: ...}}``, with what suits the kind of metric.

    Args:
        key: a metric's name, a trigger's name, or a whole query.
        metric: of ours, that may stand for it.
        window_s: in seconds.
    """
    kind = METRICS[metric].kind
    over = {Kind.HISTOGRAM: "over: p95, ", Kind.COUNTER: "over: rate, "}.get(kind, "")
    reduce = "merge" if kind in (Kind.HISTOGRAM, Kind.RATIO) else "sum"
    name = key if _PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)
    return f"metric_map: {{{name}: {{metric: {metric}, {over}reduce: {reduce}, window_s: {window_s:g}}}}}"


def map_line_of_query(query: str, trigger: str = "") -> str:
    """The line for a query: for the first metric and the first range of it that are known.

    Args:
        query: PromQL.
        trigger: name of the trigger it belongs to, which is the shorter key.
    """
    series = (find_series(name) for name in re.findall(r"[A-Za-z_:][\w:]*", query))
    metric = next((found.metric for found in series if found is not None), USUAL_METRIC)
    ranges = (duration_s(text.strip()) for text in re.findall(r"\[([^\]:]*)\]", query))
    window_s = next((found for found in ranges if found), USUAL_WINDOW_S)
    return map_line(trigger or query, metric, window_s)
