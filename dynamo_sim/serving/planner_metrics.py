"""What a planner is shown at a tick (`spec 01, 11`)."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from dynamo_sim.engine.step import Step
from dynamo_sim.fleet.processes import EventOrder
from dynamo_sim.workload.request import Request

RowOrder = tuple[float, int, int, float, int, int, float]
"""When a pass ended, the round and whether it took no time, and the `EventOrder` of its end."""

SNAPSHOT_FIELDS = (
    "num_prefill_requests",
    "sum_prefill_tokens",
    "var_prefill_length",
    "sum_prefill_kv_tokens",
    "num_decode_requests",
    "sum_decode_kv_tokens",
    "var_decode_kv_tokens",
    "num_queued_prefill",
    "sum_queued_prefill_tokens",
    "var_queued_prefill_length",
    "num_queued_decode",
    "sum_queued_decode_kv_tokens",
    "var_queued_decode_kv_tokens",
)

_snapshot_values = attrgetter(*SNAPSHOT_FIELDS)


class TrafficWindow:
    """Requests and passes that ended since the last tick."""

    def __init__(self) -> None:
        self.since_ms = 0.0
        self._reset()

    def _reset(self) -> None:
        self.requests = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.ttft_sum_ms = 0.0
        self.ttft_count = 0
        self.itl_sum_ms = 0.0
        self.itl_count = 0
        self.tokens = 0
        self.forwards = 0
        self.hit_rate_sum = 0.0
        self.hit_rate_count = 0

    def routed(self, hit_rate: float) -> None:
        """Note the share of a prompt's blocks that its router found cached where it sent it (`spec 06, 8`)."""
        self.hit_rate_sum += hit_rate
        self.hit_rate_count += 1

    def completed(self, request: Request) -> None:
        """Note a request that was not rejected."""
        assert request.first_token_ms is not None and request.last_token_ms is not None
        self.requests += 1
        self.input_tokens += request.input_tokens
        self.output_tokens += request.output_tokens
        ttft = max(request.first_token_ms - request.arrival_ms, 0.0)
        if ttft > 0:
            self.ttft_sum_ms += ttft
            self.ttft_count += 1
        if request.output_tokens > 1:
            gaps = request.emitted_tokens - 1
            span = max(request.last_token_ms - request.first_token_ms, 0.0)
            self.itl_sum_ms += span / gaps if gaps else 0.0
            self.itl_count += 1

    def take(self, now_ms: float) -> dict[str, Any]:
        """The window up to now; the next one begins here."""
        count = self.requests
        result = {
            "duration_s": (now_ms - self.since_ms) / 1000.0,
            "num_req": count,
            "avg_isl": self.input_tokens / count if count else 0.0,
            "avg_osl": self.output_tokens / count if count else 0.0,
            "avg_ttft_ms": self.ttft_sum_ms / self.ttft_count if self.ttft_count else 0.0,
            "avg_itl_ms": self.itl_sum_ms / self.itl_count if self.itl_count else 0.0,
            "avg_accept_length": self.tokens / self.forwards if self.forwards else None,
            "avg_kv_hit_rate": self.hit_rate_sum / self.hit_rate_count if self.hit_rate_count else 0.0,
            "hit_rate_count": self.hit_rate_count,
            "accept_length_forward_count": self.forwards,
        }
        self.since_ms = now_ms
        self._reset()
        return result


class PassBuffer:
    """Forward-pass metrics since the last tick, in the order in which the passes ended.

    A stretch is reported pass by pass: what has ended by now, the rest at a later tick.
    """

    def __init__(self, traffic: TrafficWindow) -> None:
        self._traffic = traffic
        self._rows: list[tuple[RowOrder, int, Step, int]] = []
        self._immediate = 0

    def ended(self, worker_id: int, step: Step, order: EventOrder, now_ms: float, round_number: int) -> None:
        """Note a step that ended in that round of the present instant; ``order`` is the place of its end."""
        last = len(step.ends_ms) - 1
        if step.ends_ms[last] == step.start_ms:
            # Passes of no time ran in the round, after the completions.
            for index in range(last + 1):
                self._immediate += 1
                place = (now_ms, round_number, 1, float(worker_id), 0, 0, float(self._immediate))
                self._rows.append((place, worker_id, step, index))
            self._count(step, last + 1)
            return
        self._passes(worker_id, step, order[2], last)
        self._rows.append(((now_ms, round_number, 0, *order), worker_id, step, last))
        self._count(step, 1)

    def in_progress(self, worker_id: int, step: Step, passes_step: int, now_ms: float) -> None:
        """Note the passes of a stretch that have ended although the stretch has not."""
        ends = step.ends_ms
        last = step.reported_passes
        while last < len(ends) - 1 and ends[last] <= now_ms:
            last += 1
        self._passes(worker_id, step, passes_step, last)

    def _passes(self, worker_id: int, step: Step, passes_step: int, stop: int) -> None:
        first = step.reported_passes
        for index in range(first, stop):
            if index:
                place: RowOrder = (
                    *(step.ends_ms[index], 1, 0),
                    *(step.ends_ms[index - 1], 1, passes_step, float(worker_id)),
                )
            else:
                place = (step.ends_ms[0], 1, 0, *step.order)
            self._rows.append((place, worker_id, step, index))
        step.reported_passes = stop
        self._count(step, stop - first)

    def _count(self, step: Step, passes: int) -> None:
        self._traffic.tokens += step.tokens * passes
        self._traffic.forwards += step.forwards * passes

    def take(self) -> list[dict[str, Any]]:
        """One dict a pass, and forget them."""
        self._rows.sort(key=lambda row: row[0])
        rows = [snapshot(worker_id, step, index) for _, worker_id, step, index in self._rows]
        self._rows.clear()
        return rows


def snapshot(worker_id: int, step: Step, index: int) -> dict[str, Any]:
    """Forward-pass metrics of pass ``index`` of a step, with ``wall_time`` in seconds."""
    stats, place = step.stats_of(index)
    start = step.ends_ms[index - 1] if index else step.start_ms
    row: dict[str, Any] = {"worker_id": worker_id, "wall_time": (step.ends_ms[index] - start) / 1000.0}
    row.update(zip(SNAPSHOT_FIELDS, _snapshot_values(stats), strict=True))
    row["sum_decode_kv_tokens"] += place * stats.decode_kv_growth
    return row
