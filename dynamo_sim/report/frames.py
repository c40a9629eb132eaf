"""The records of a run as pandas tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dynamo_sim.engine.pass_columns import Columns
from dynamo_sim.records.columns import RequestColumns
from dynamo_sim.records.fleet_changes import FleetChange
from dynamo_sim.records.phases import is_handed_over
from dynamo_sim.records.records import FleetRecords, RunRecords
from dynamo_sim.records.routing import RoutingDecision
from dynamo_sim.report.tier_figures import ROW_FIELDS, tier_row

UNFINISHED = "unfinished"
"""The outcome of a request that had neither been completed nor rejected when the run ended."""


def requests_frame(records: RunRecords, columns: RequestColumns) -> pd.DataFrame:
    """One row a request that arrived, in order of arrival at the fleet, also if it never ended.

    Columns: ``index`` in the workload; ``session_id``, ``turn_index`` and ``worker_id`` (missing where there
    is none); ``outcome`` (completed, rejected, failed or unfinished); the observed times, the latencies
    (``queue_ms``, ``ttft_ms``, ``ttst_ms``, ``tpot_ms``, ``e2e_ms``) and the counts of `RequestColumns`. Where there
    are two fleets, ``worker_id`` is the decode worker, and the `HANDOFF_COLUMNS` follow. With lower cache tiers, tokens
    that came back from each of them, ``swap_ins`` and ``swap_in_wait_ms`` follow.
    """
    frame = _requests_frame(records, columns)
    if records.tier_use is not None:
        rows = [tier_row(request) for request in records.requests]
        for name in ROW_FIELDS:
            frame[name] = pd.Series([row[name] for row in rows], dtype=TIER_DTYPES.get(name, "int64"))
    if is_handed_over(records.requests):
        for name, dtype in HANDOFF_COLUMNS.items():
            frame[name] = pd.Series([getattr(r.handoff, name) for r in records.requests], dtype=dtype)
    return frame


TIER_DTYPES = {"swap_in_wait_ms": "float64"}

HANDOFF_COLUMNS: dict[str, Any] = {
    "prefill_worker_id": "Int64",
    "decode_worker_id": "Int64",
    "source_held_ms": "float64",
    "destination_reserved_ms": "float64",
    "transfer_started_ms": "float64",
    "transfer_done_ms": "float64",
    "transfer_tokens": "int64",
    "destination_activated_ms": "float64",
    "decode_admit_ms": "float64",
    "source_released_ms": "float64",
    "prefill_overlap_tokens": "Int64",
    "decode_overlap_tokens": "Int64",
    "decode_reused_tokens": "Int64",
}
"""Columns of requests that two fleets served (`HandoffMilestones`), and their types."""


def _requests_frame(records: RunRecords, columns: RequestColumns) -> pd.DataFrame:
    requests = records.requests
    outcomes = [UNFINISHED if r.outcome is None else r.outcome.value for r in requests]
    return pd.DataFrame(
        {
            "index": np.fromiter((r.index for r in requests), np.int64, len(requests)),
            "session_id": pd.array([r.session_id for r in requests], dtype="string"),
            "turn_index": pd.array([r.turn_index for r in requests], dtype="Int64"),
            "worker_id": pd.array([r.worker_id for r in requests], dtype="Int64"),
            "outcome": pd.array(outcomes, dtype="string"),
            "arrival_ms": columns.arrival_ms,
            "first_admit_ms": columns.first_admit_ms,
            "first_token_ms": columns.first_token_ms,
            "second_token_ms": columns.second_token_ms,
            "last_token_ms": columns.last_token_ms,
            "ended_ms": columns.ended_ms,
            "queue_ms": columns.queue_ms,
            "ttft_ms": columns.ttft_ms,
            "ttst_ms": columns.ttst_ms,
            "tpot_ms": columns.tpot_ms,
            "e2e_ms": columns.e2e_ms,
            "input_tokens": columns.input_tokens,
            "output_tokens": columns.output_tokens,
            "emitted_tokens": columns.emitted_tokens,
            "first_reused_tokens": columns.first_reused_tokens,
            "reused_tokens": columns.reused_tokens,
            "preemptions": columns.preemptions,
        }
    )


def passes_frame(columns: Columns, fleet_names: Sequence[str] = ()) -> pd.DataFrame:
    """One row a forward pass, in the order in which they ended; columns as in `pass_columns`.

    Where there are two fleets, ``fleet`` is the name of the pass's own.
    """
    frame = pd.DataFrame(columns, copy=False)  # a long run has gigabytes of them
    if "fleet" in frame:
        frame["fleet"] = pd.array(np.array(fleet_names, dtype=object)[columns["fleet"]], dtype="string")
    return frame


def fleet_frame(fleets: Sequence[FleetRecords]) -> pd.DataFrame:
    """One row a change of a fleet, the first being its state at 0; of changes at one time, prefill's come first.

    Columns: ``at_ms``; ``fleet``, its name, where there are two; how many workers are ``active``, ``starting`` and
    ``draining`` from then on; ``cause`` (`FleetCause`); ``worker_ids``, a tuple of those it happened to.
    """
    if len(fleets) < 2:
        return _changes_frame(fleets[0].changes if fleets else [])
    frames = []
    for fleet in fleets:
        frame = _changes_frame(fleet.changes)
        frame.insert(1, "fleet", pd.Series(fleet.name, frame.index, dtype="string"))
        frames.append(frame)
    return pd.concat(frames).sort_values("at_ms", kind="stable", ignore_index=True)


def _changes_frame(changes: Sequence[FleetChange]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "at_ms": np.array([c.at_ms for c in changes], dtype=np.float64),
            "active": np.array([c.active for c in changes], dtype=np.int64),
            "starting": np.array([c.starting for c in changes], dtype=np.int64),
            "draining": np.array([c.draining for c in changes], dtype=np.int64),
            "cause": pd.array([c.cause.value for c in changes], dtype="string"),
            "worker_ids": pd.Series([c.worker_ids for c in changes], dtype=object),
        }
    )


def routing_frame(decisions: Sequence[RoutingDecision]) -> pd.DataFrame:
    """One row a decision of a router, in order.

    Columns: ``at_ms``; ``fleet``, where there are two; ``index`` of the request and its ``worker_id``; ``router_ms``,
    its time in the router's queue; ``hit_rate``, NaN where the router does not know; and what it weighed, each a tuple
    with one value for each worker of the tuple ``worker_ids``.
    """
    frame = pd.DataFrame({"at_ms": np.array([d.at_ms for d in decisions], dtype=np.float64)})
    if len({d.fleet for d in decisions}) > 1:
        frame["fleet"] = pd.array([d.fleet for d in decisions], dtype="string")
    frame["index"] = np.array([d.request.index for d in decisions], dtype=np.int64)
    frame["worker_id"] = np.array([d.worker_id for d in decisions], dtype=np.int64)
    frame["router_ms"] = np.array([d.waited_ms for d in decisions], dtype=np.float64)
    frame["hit_rate"] = _numbers([d.hit_rate for d in decisions])
    for name in dict.fromkeys(name for decision in decisions for name in decision.terms):
        frame[name] = pd.Series([tuple(d.terms.get(name, ())) for d in decisions], dtype=object)
    return frame


_COUNTS = ("current", "desired", "stabilised", "target")
_TUPLES = ("added", "cancelled", "marked")


def decisions_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row an evaluation of an autoscaler, in order.

    Columns: ``at_s``; ``fleet``, where there are two; ``loop`` and ``policy``; ``current``, ``desired``, ``stabilised``
    and ``target`` workers (missing where the policy does not say); ``reason``; one ``value:NAME`` for each number it
    read; ``added``, ``cancelled`` and ``marked``, tuples of worker ids; ``hold``; ``events``, a tuple of texts.
    """
    frame = pd.DataFrame({"at_s": np.array([row["at_s"] for row in rows], dtype=np.float64)})
    about_fleets = ("fleet",) if any("fleet" in row for row in rows) else ()
    for name in (*about_fleets, "loop", "policy"):
        frame[name] = pd.array([row.get(name) for row in rows], dtype="string")
    for name in _COUNTS:
        counts = [None if row.get(name) is None else int(row[name]) for row in rows]
        frame[name] = pd.array(counts, dtype="Int64")
    frame["reason"] = pd.array([row.get("reason", "") for row in rows], dtype="string")
    names = dict.fromkeys(name for row in rows for name in row if name.startswith("value:"))
    values = {name: _numbers([row.get(name) for row in rows]) for name in names}
    frame = pd.concat([frame, pd.DataFrame(values, index=frame.index)], axis=1)
    for name in _TUPLES:
        frame[name] = pd.Series([tuple(row.get(name, ())) for row in rows], dtype=object)
    frame["hold"] = np.array([bool(row.get("hold", False)) for row in rows], dtype=bool)
    frame["events"] = pd.Series([tuple(row.get("events", ())) for row in rows], dtype=object)
    return frame


def _numbers(values: list[Any]) -> pd.Series[Any]:
    """Numbers with NaN for None; what a custom policy read may also be something else."""
    try:
        return pd.Series([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    except (TypeError, ValueError):
        return pd.Series(values, dtype=object)
