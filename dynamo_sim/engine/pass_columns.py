"""Forward passes as columns: what was recorded of stretches, spread out to one element a pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.engine.pass_log import ROW, PassLog

Ints = NDArray[np.int64]

Columns = dict[str, NDArray[Any]]
"""Arrays of one length, by name."""

AS_RECORDED = ("prefill_requests", "prefill_tokens", "prefill_kv_tokens", "decode_requests")
"""Columns whose values hold for all passes of a row of a `PassLog`."""


def pass_columns(logs: Sequence[PassLog]) -> Columns:
    """All passes in the order in which they ended; of those that ended at once, the lowest worker's come first.

    Returns:
        Equally long arrays, of floats for times and of whole numbers for all else: ``worker_id``;
        ``start_ms`` and ``end_ms``; requests and tokens that take part (``prefill_kv_tokens`` are prompt tokens that
        were there before); ``output_tokens`` emitted; ``queued_requests`` that wait after the pass, new and preempted;
        ``used_kv_tokens`` held during it.
    """
    rows = _joined((np.frombuffer(log.rows, ROW) for log in logs), ROW)
    ends = _joined((np.frombuffer(log.ends_ms) for log in logs), np.dtype(np.float64))
    rows_of_worker = [len(log.rows) // ROW.itemsize for log in logs]
    worker = np.repeat(np.array([log.worker_id for log in logs], dtype=np.int64), rows_of_worker)
    block_tokens = np.repeat(np.array([log.block_tokens for log in logs], dtype=np.int64), rows_of_worker)

    lengths = rows["passes"].astype(np.int64)
    row = np.repeat(np.arange(len(rows)), lengths)
    firsts = np.cumsum(lengths) - lengths
    within = np.arange(len(ends)) - firsts[row]
    starts = np.empty(len(ends))
    starts[1:] = ends[:-1]
    starts[firsts] = rows["start_ms"]
    opened = _joined((np.frombuffer(log.opened_blocks, np.intc) for log in logs), np.dtype(np.intc))
    held = np.cumsum(opened, dtype=np.int64)
    held -= opened  # what a pass opens is held from the next one on
    held += (rows["used_blocks"] - held[firsts])[row]

    order = _by_end(ends, worker[row])
    row, within = row[order], within[order]

    def spread(values: Ints) -> Ints:
        return values.astype(np.int64)[row]

    output_tokens = spread(rows["output_tokens"])
    columns: Columns = {"worker_id": worker[row], "start_ms": starts[order], "end_ms": ends[order]}
    for name in AS_RECORDED:
        columns[name] = spread(rows[name])
    # Each pass of a row adds the same number of tokens to the requests.
    columns["decode_kv_tokens"] = spread(rows["decode_kv_tokens"]) + within * output_tokens
    columns["output_tokens"] = output_tokens
    columns["queued_requests"] = spread(rows["queued_requests"])
    # SGLang can hold less than nothing: `spec 05, 12`.
    columns["used_kv_tokens"] = np.maximum(held[order] * block_tokens[row], 0)
    return columns


def joined_by_end(parts: Sequence[Columns]) -> Columns:
    """The passes of several fleets, in order of their ends, with the place of the fleet in ``parts`` as ``fleet``.

    Passes of one end keep the order of the fleets.
    """
    names = list(parts[0])
    fleet = np.repeat(np.arange(len(parts)), [len(part["end_ms"]) for part in parts])
    order = np.argsort(np.concatenate([part["end_ms"] for part in parts]), kind="stable")
    whole = {name: np.concatenate([part[name] for part in parts])[order] for name in names}
    return {"fleet": fleet[order], **whole}


def _joined(parts: Iterable[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *parts])


def _by_end(end_ms: NDArray[np.float64], worker_id: Ints) -> Ints:
    """Places in order of the end, then of the worker, then as they are."""
    order = np.argsort(end_ms)  # equal ends are put in order below, so the fastest sort will do
    ordered = end_ms[order]
    tied = np.zeros(len(order) + 1, dtype=bool)
    tied[1:-1] = ordered[1:] == ordered[:-1]
    places = np.flatnonzero(tied[1:] | tied[:-1])
    some = order[places]
    order[places] = some[np.lexsort((some, worker_id[some], end_ms[some]))]
    return order
