"""One row a request that ended, in the reference's form (`spec 09, 7`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dynamo_sim.records.records import RunRecords
from dynamo_sim.report.tier_figures import tier_row
from dynamo_sim.workload.request import Request

HANDOFF_FIELDS = (
    "prefill_admit_ms",
    "source_held_ms",
    "destination_reserved_ms",
    "destination_activated_ms",
    "decode_admit_ms",
    "source_released_ms",
    "decode_reused_input_tokens",
    "prefill_route_overlap_tokens",
    "decode_route_overlap_tokens",
)
"""Fields that say something on a disaggregated fleet only."""


def request_rows(records: RunRecords) -> list[dict[str, Any]]:
    """Rows of the requests that were completed or rejected, by arrival; equal arrivals as the fleet saw them.

    Returns:
        Dicts with the keys of the reference in its order, None where it writes null. ``uuid`` is made from
        the request's index, so it is the same in every run; the reference draws it at random. Where there are lower
        cache tiers, what came back from each of them follows (`tier_row`).
    """
    ended = [request for request in records.requests if request.outcome is not None]
    ended.sort(key=lambda request: request.arrival_ms)
    rows = [_row(request, records.single_worker) for request in ended]
    if records.tier_use is not None:
        for row, request in zip(rows, ended, strict=True):
            row.update(tier_row(request))
    return rows


def iter_json_lines(records: RunRecords) -> Iterator[str]:
    """The rows as JSON, one object a line, each with its newline."""
    for row in request_rows(records):
        yield json.dumps(row, separators=(",", ":")) + "\n"


def _placement(request: Request, single_worker: bool) -> dict[str, Any]:
    """Which workers served a request, and the milestones of its handoff (`spec 07, 14`)."""
    handoff = request.handoff
    if handoff is None:
        worker_id = None if single_worker else request.worker_id
        return {"prefill_worker_idx": None, "decode_worker_idx": worker_id, **dict.fromkeys(HANDOFF_FIELDS)}
    return {
        "prefill_worker_idx": handoff.prefill_worker_id,
        "decode_worker_idx": handoff.decode_worker_id,
        "prefill_admit_ms": request.first_admit_ms,
        "source_held_ms": handoff.source_held_ms,
        "destination_reserved_ms": handoff.destination_reserved_ms,
        "destination_activated_ms": handoff.destination_activated_ms,
        "decode_admit_ms": handoff.decode_admit_ms,
        "source_released_ms": handoff.source_released_ms,
        "decode_reused_input_tokens": handoff.decode_reused_tokens,
        "prefill_route_overlap_tokens": handoff.prefill_overlap_tokens,
        "decode_route_overlap_tokens": handoff.decode_overlap_tokens,
    }


def _row(request: Request, single_worker: bool) -> dict[str, Any]:
    first_ms, last_ms = request.first_token_ms, request.last_token_ms
    ttft_ms = ttst_ms = itl_ms = e2e_ms = None
    if first_ms is not None and last_ms is not None:
        ttft_ms = max(first_ms - request.arrival_ms, 0.0)
        e2e_ms = max(last_ms - request.arrival_ms, 0.0)
        if request.second_token_ms is not None:
            ttst_ms = max(request.second_token_ms - first_ms, 0.0)
            itl_ms = max(last_ms - first_ms, 0.0) / (request.emitted_tokens - 1)
    assert request.outcome is not None
    return {
        "session_id": None if single_worker else request.session_id,
        "turn_index": None if single_worker else request.turn_index,
        "uuid": f"00000000-0000-0000-0000-{request.index:012x}",
        "arrival_time_ms": request.arrival_ms,
        "first_admit_ms": request.first_admit_ms,
        "first_token_ms": first_ms,
        "last_token_ms": last_ms,
        "ttft_ms": ttft_ms,
        "ttst_ms": ttst_ms,
        "e2e_latency_ms": e2e_ms,
        "itl_ms": itl_ms,
        "input_length": request.input_tokens,
        "output_length": request.output_tokens,
        "reused_input_tokens": request.reused_tokens,
        **_placement(request, single_worker),
        "terminal_status": request.outcome.value,
    }
