"""The records of a run as pandas tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dynamo_sim.metrics.columns import RequestColumns
from dynamo_sim.metrics.passes import Columns
from dynamo_sim.metrics.records import FleetChange, RunRecords

UNFINISHED = "unfinished"
"""The outcome of a request that had neither been completed nor rejected when the run ended."""


def requests_frame(records: RunRecords, columns: RequestColumns) -> pd.DataFrame:
    """One row a request that arrived, in order of arrival at the fleet, also if it never ended.

    Columns: ``index`` in the workload; ``session_id``, ``turn_index`` and ``worker_id`` (missing where there
    is none); ``outcome`` (completed, rejected or unfinished); the observed times, the latencies
    (``queue_ms``, ``ttft_ms``, ``ttst_ms``, ``tpot_ms``, ``e2e_ms``) and the counts of `RequestColumns`.
    """
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
        }
    )


def passes_frame(columns: Columns) -> pd.DataFrame:
    """One row a forward pass, in the order in which the steps ended; columns as in `pass_columns`."""
    return pd.DataFrame(columns)


def fleet_frame(changes: list[FleetChange]) -> pd.DataFrame:
    """One row a change of the fleet, the first being its state at 0.

    Columns: ``at_ms``; how many workers are ``active``, ``starting`` and ``leaving`` from then on; ``cause``
    (start, added, ready, cancelled, marked, removed); ``worker_ids``, a tuple of those it happened to.
    """
    return pd.DataFrame(
        {
            "at_ms": np.array([c.at_ms for c in changes], dtype=np.float64),
            "active": np.array([c.active for c in changes], dtype=np.int64),
            "starting": np.array([c.starting for c in changes], dtype=np.int64),
            "leaving": np.array([c.leaving for c in changes], dtype=np.int64),
            "cause": pd.array([c.cause for c in changes], dtype="string"),
            "worker_ids": pd.Series([c.worker_ids for c in changes], dtype=object),
        }
    )
