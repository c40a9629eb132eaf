"""The line of ``metric_map`` for a metric of a manifest that has no counterpart: one that fits it, or none."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from dynamo_sim.autoscaling.kubernetes.manifests.section import duration_s
from dynamo_sim.autoscaling.kubernetes.promql.names import SECONDS, find_series, plain_name
from dynamo_sim.autoscaling.kubernetes.promql.tree import MAX_LETTERS
from dynamo_sim.metric_catalogue import METRICS, Kind, is_pooled

NOTHING_FITS = "no metric here fits it of itself; one can be named by metric_map beside the manifest"
"""What is said where there is no line to write."""

USUAL_WINDOW_S = 60.0

MAX_KEY_LETTERS = 300
"""A longer query is better named by its trigger."""

_PLAIN = re.compile(r"[A-Za-z_][\w:]*\w")

_BY_WORDS: tuple[tuple[str, str], ...] = (
    (r"desired_?replicas", ""),  # the decision of another autoscaler
    (r"(gpu|dcgm).*util|gr_engine_active", "busy"),
    (r"(kv|cache|block).*(usage|util|perc|factor|fill)|token_usage", "kv_usage"),
    (r"hit_?rate", "prefix_hit_rate"),
    (r"ttft|time_to_first_token", "ttft"),
    (r"inter_?token|\bitl|_itl", "itl"),
    (r"tpot|time_per_output_token", "tpot"),
    (r"queue_?time|time_in_queue|wait(ing)?_?time", "queue_time"),
    (r"e2e|latency|request_duration|response_time", "e2e"),
    (r"flow_control|router_queue|gateway.*queue|pending_requests", "router_queue"),
    (r"waiting|queue|queued|backlog", "waiting"),
    (
        r"in_?flight|ongoing|concurren|active.*request|request.*active|downstream_requests|stage_requests",
        "in_flight",
    ),
    (r"running|batch_(current_)?size", "running"),
    (r"preempt", "preemptions"),
    (r"(prompt|input).*tokens", "prompt_tokens"),
    (r"(generat|output|completion).*tokens|tokens_per_sec", "generated_tokens"),
    (
        r"requests?_(total|count|rate|per_sec)|incoming_requests|_rps\b|\bqps|_qps|requests?$",
        "requests_started",
    ),
)
"""What a name is about, by words in it; the first that fits counts."""

_PERCENTILE = re.compile(r"p(\d{2,3})(?![0-9])|(\d{2})th_?percentile")
_QUANTILE = re.compile(r"histogram_quantile\s*\(\s*(0?\.\d+)")
_UNDERSTOOD = (
    *("sum", "avg", "max", "min", "count", "by", "without", "le", "or", "vector"),
    *("rate", "irate", "increase", "avg_over_time", "histogram_quantile"),
)
_DIFFERENT = re.compile(r"[<>=@]|\[[^\]]*:|\b(bool|unless|and|offset|on|ignoring|group_left|group_right)\b")
"""Parts of a query that make another number of a metric than any of ours."""


@dataclass(frozen=True, slots=True)
class _Fit:
    """A metric of ours that a name may stand for, and the factor from our unit to its."""

    metric: str
    scale: float = 1.0


def map_line(name: str, total: bool, metric: str = "") -> str:
    """``metric_map: {NAME: {metric: ..., ...}}`` for a metric that is only named; empty where nothing fits.

    Args:
        name: of the metric.
        total: whether one number for the fleet is needed, not a sample a worker.
        metric: what it is known to stand for; empty where only its name can tell.
    """
    fit = _Fit(metric, SECONDS) if metric else _fit(name)
    if fit is None or not (total or METRICS[fit.metric].per_worker):
        return ""
    percentile = _PERCENTILE.search(name.lower())
    percent = (percentile[1] or percentile[2]) if percentile else "95"
    mean = re.search(r"average|avg|mean|util|usage", name.lower()) is not None
    return _line(name, fit, percent, "avg" if mean else "sum", USUAL_WINDOW_S, total)


def map_line_of_query(query: str, trigger: str = "") -> str:
    """The line for a query that is not understood as a whole; empty where nothing fits.

    Args:
        query: PromQL.
        trigger: name of the trigger it belongs to, which is the shorter key.
    """
    query, key = query[:MAX_LETTERS], trigger or query
    if len(key) > MAX_KEY_LETTERS:
        key = "NAME OF THE TRIGGER"
    bare = re.sub(r"\{[^{}]*\}", "", query)
    bare = re.sub(r"\b(by|without)\s*\([^()]*\)", "", bare)
    ranges = [duration_s(text.strip()) for text in re.findall(r"\[([^\[\]:]*)\]", bare)]
    words = re.findall(r"[A-Za-z_:][\w:]*", re.sub(r"\[[^\[\]]*\]", "", bare))
    names = {_base(word) for word in words if word not in _UNDERSTOOD}
    if len(names) != 1 or _DIFFERENT.search(bare):
        return ""
    (name,) = names
    fit = _fit(name)
    if fit is None:
        return ""
    kind = METRICS[fit.metric].kind
    counts = kind in (Kind.COUNTER, Kind.HISTOGRAM)
    if not counts and re.search(r"\b(i?rate|increase)\b", bare):
        return ""  # how fast a gauge changes
    if re.search(r"[-+*/%^]", re.sub(r"\bsum\b.*/\s*count\b", "", bare, flags=re.DOTALL)):
        return ""
    quantile = _QUANTILE.search(bare)
    percent = f"{float(quantile[1]) * 100:.10g}" if quantile else "95"
    operators = re.findall(r"\b(sum|avg|max|min)\s*\(", bare)
    reduce = "avg" if re.search(r"/\s*count\b", bare) else operators[0] if operators else "sum"
    window_s = next((found for found in ranges if found), USUAL_WINDOW_S)
    return _line(key, fit, percent, reduce, window_s, total=True)


def _fit(name: str) -> _Fit | None:
    known = find_series(name)
    if known is not None:
        return _Fit(known.metric, known.scale)
    if name in METRICS:
        return _Fit(name)
    plain = plain_name(name).lower()
    metric = next((metric for words, metric in _BY_WORDS if re.search(words, plain)), "")
    if not metric:
        return None
    if METRICS[metric].kind is Kind.HISTOGRAM:
        return _Fit(metric, 1.0 if re.search(r"_ms\b|_ms_|millisec", plain) else SECONDS)
    percent = metric == "busy" and "gr_engine_active" not in plain
    return _Fit(metric, 100.0 if percent else 1.0)


def _base(word: str) -> str:
    """A name without the suffix of a histogram's part, where it is one."""
    for part in ("_bucket", "_sum", "_count"):
        if word.endswith(part):
            return word.removesuffix(part)
    return word


def _line(key: str, fit: _Fit, percent: str, reduce: str, window_s: float, total: bool) -> str:
    metric = METRICS[fit.metric]
    parts = [f"metric: {fit.metric}"]
    if metric.kind is Kind.HISTOGRAM:
        parts.append(f"over: p{percent}")
    elif metric.kind is Kind.COUNTER:
        parts.append("over: rate")
    if total and metric.per_worker:
        pooled = is_pooled(metric) and metric.name != "busy"
        parts.append(f"reduce: {'merge' if pooled else reduce}")
    if metric.kind is not Kind.GAUGE:
        parts.append(f"window_s: {window_s:g}")
    if fit.scale != 1.0:
        parts.append(f"scale: {fit.scale:g}")
    name = key if _PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)
    return f"metric_map: {{{name}: {{{', '.join(parts)}}}}}"
