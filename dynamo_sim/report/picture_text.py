"""What the pictures of a run show, in words, for readers who do not see them."""

from __future__ import annotations

import numpy as np

from dynamo_sim.report.breakdown import breakdown_line, mean_phases
from dynamo_sim.report.tables import RunTables
from dynamo_sim.text import duration_text


def picture_text(result: RunTables, name: str) -> str:
    """One or two sentences with the figures of a picture.

    Args:
        result: the run.
        name: of the picture (`Plots.names`).
    """
    texts = {
        "latency": _latency,
        "ttft_over_time": _ttft_over_time,
        "breakdown": _breakdown,
        "timeline": _timeline,
        "decisions": _decisions,
        "routing": _routing,
        "gantt": _gantt,
    }
    return texts[name](result)


def _latency(result: RunTables) -> str:
    summary = result.summary
    if not summary["completed_requests"]:
        return "No latencies: no request got a token."
    spreads = ", ".join(
        f"{label} {duration_text(summary[f'median_{key}'])} at p50 and {duration_text(summary[f'p99_{key}'])} at p99"
        for label, key in (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"), ("latency", "e2e_latency_ms"))
    )
    return f"Cumulative distributions of {summary['completed_requests']:,} requests: {spreads}."


def _ttft_over_time(result: RunTables) -> str:
    columns = result.columns.where(result.columns.counting)
    if not len(columns):
        return "No times to first token: no request got a token."
    ttft_ms, worst = columns.ttft_ms, int(np.argmax(columns.ttft_ms))
    return (
        f"Time to first token by arrival, from {duration_text(float(ttft_ms.min()))} to "
        f"{duration_text(float(ttft_ms[worst]))}; the longest is that of an arrival at "
        f"{duration_text(float(columns.arrival_ms[worst]))}."
    )


def _breakdown(result: RunTables) -> str:
    line = breakdown_line(mean_phases(result.records.requests))
    return f"{line}." if line else "No phases: no request was completed."


def _timeline(result: RunTables) -> str:
    sizes = ", ".join(
        (f"{name}: " if len(result.fleet_uses) > 1 else "")
        + (f"{use.fewest:,} to {use.most:,} workers" if use.changes else f"{use.most:,} workers all the time")
        for name, use in result.fleet_uses.items()
    )
    waited = np.nan_to_num(result.columns.queue_ms)
    return (
        f"Over {duration_text(result.end_ms)}: {len(result.columns):,} arrivals, {sizes}; "
        f"the longest time in the queue is {duration_text(float(waited.max(initial=0.0)))}."
    )


def _decisions(result: RunTables) -> str:
    targets = result.decisions["target"].dropna()
    changed = int((result.decisions["target"] != result.decisions["current"]).fillna(False).sum())
    spread = f", targets from {targets.min()} to {targets.max()}" if len(targets) else ""
    return f"{len(result.decisions):,} evaluations, {changed:,} of which changed the fleet{spread}."


def _routing(result: RunTables) -> str:
    summary, decisions = result.summary, len(result.records.routing)
    found = (
        f"it found {summary['routing_hit_rate']:.1%} of the blocks of a prompt cached on its worker, on average; "
        if "routing_hit_rate" in summary
        else ""
    )
    return (
        f"{decisions:,} decisions of the router: {found}"
        f"the fullest worker had {summary['load_imbalance']:.2f} times the mean of the requests in flight."
    )


def _gantt(result: RunTables) -> str:
    passes = result.pass_columns
    workers = sum(len([log for log in fleet.passes if log.ends_ms]) for fleet in result.records.fleets)
    busy_ms = float((passes["end_ms"] - passes["start_ms"]).sum())
    share = busy_ms / max(sum(fleet.worker_seconds for fleet in result.records.fleets) * 1000.0, 1e-9)
    return (
        f"{len(passes['end_ms']):,} passes, one row for each of {workers:,} workers; "
        f"they computed {min(share, 1.0):.0%} of the time that workers existed."
    )
