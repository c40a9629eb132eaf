"""Records of made-up runs, for tests of the report: a small batching fleet, and large runs drawn at random."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from dynamo_sim.engine.gaps import GapLog
from dynamo_sim.engine.pass_log import PassLog
from dynamo_sim.records.fleet_changes import FleetCause, FleetChange
from dynamo_sim.records.records import FleetRecords, RunRecords
from dynamo_sim.workload.milestones import HandoffMilestones
from dynamo_sim.workload.request import Outcome, Request
from tests.helpers import note_passes

POOL_TOKENS = 16_384
MAX_RUNNING = 24


def sla(ttft_ms: float | None = None, itl_ms: float | None = None, e2e_ms: float | None = None) -> Any:
    return SimpleNamespace(ttft_ms=ttft_ms, itl_ms=itl_ms, e2e_ms=e2e_ms)


class ToyScenario:
    """As much of a scenario as a result asks for."""

    name = "toy"
    seed = 7

    def __init__(self, bounds: Any = None) -> None:
        self.sla = bounds if bounds is not None else sla()

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "seed": self.seed, "sla": vars(self.sla), "fleet": {"workers": 2}}


def served(
    index: int,
    arrival_ms: float,
    token_times: list[float],
    input_tokens: int = 100,
    output_tokens: int | None = None,
) -> Request:
    """A request with tokens at these times, admitted when it arrived; finished if it has all it asked for."""
    wanted = len(token_times) if output_tokens is None else output_tokens
    request = Request(index, arrival_ms, input_tokens, wanted)
    request.note_admission(arrival_ms, 0)
    request.worker_id = 0
    request.first_token_ms, request.last_token_ms = token_times[0], token_times[-1]
    request.second_token_ms = token_times[1] if len(token_times) > 1 else None
    request.emitted_tokens = len(token_times)
    if len(token_times) == wanted:
        request.outcome, request.ended_ms = Outcome.COMPLETED, token_times[-1]
    return request


def rejected(index: int, arrival_ms: float, worker_id: int = 0) -> Request:
    request = Request(index, arrival_ms, 10**6, 10)
    request.worker_id = worker_id
    request.outcome, request.ended_ms = Outcome.REJECTED, arrival_ms
    return request


def records_of(requests: list[Request], token_times: list[list[float]], **fields: Any) -> RunRecords:
    """Records of requests whose token times are known, with the gaps between them."""
    log = GapLog()
    for times in token_times:
        for before, after in pairwise(times):
            log.add(before, after, 1)
    return RunRecords(requests=requests, gaps=[log], **fields)


def handed_over(
    index: int, arrival_ms: float, token_times: list[float], *, reserved_first: bool = False
) -> Request:
    """A request of two fleets: 10 ms in the queue, 20 of prefill, 5 until there is room, 8 of transfer, 2 to the batch.

    With ``reserved_first`` there is room 5 ms after the arrival, before everything else.
    """
    request = served(index, arrival_ms, token_times)
    handoff = request.handoff = HandoffMilestones()
    handoff.prefill_worker_id, handoff.decode_worker_id = 0, 1
    before = 5.0 if reserved_first else 0.0
    request.first_admit_ms = arrival_ms + before + 10.0
    handoff.source_held_ms = request.first_admit_ms + 20.0
    handoff.destination_reserved_ms = arrival_ms + 5.0 if reserved_first else handoff.source_held_ms + 5.0
    handoff.transfer_started_ms = max(handoff.source_held_ms, handoff.destination_reserved_ms)
    handoff.transfer_done_ms = handoff.transfer_started_ms + 8.0
    handoff.destination_activated_ms = handoff.transfer_done_ms + 1.0
    handoff.source_released_ms = handoff.destination_activated_ms + 0.5
    handoff.decode_admit_ms = handoff.destination_activated_ms + 1.0
    handoff.transfer_tokens = request.input_tokens
    return request


def two_fleets(requests: list[Request], end_ms: float = 1000.0, record_passes: bool = True) -> RunRecords:
    """Records of one prefill and two decode workers, with a pass or two of each."""
    prefill = FleetRecords(
        "prefill", gpus_per_worker=2, worker_seconds=end_ms / 1000.0, total_kv_tokens=POOL_TOKENS
    )
    decode = FleetRecords("decode", worker_seconds=2 * end_ms / 1000.0, total_kv_tokens=POOL_TOKENS)
    prefill.changes.append(FleetChange(0.0, 1, 0, 0, FleetCause.START, (0,)))
    decode.changes.append(FleetChange(0.0, 2, 0, 0, FleetCause.START, (0, 1)))
    if record_passes:
        for fleet, workers, kind in ((prefill, 1, "prefill_requests"), (decode, 2, "decode_requests")):
            for worker_id in range(workers):
                log = PassLog(worker_id, 1)
                fleet.passes.append(log)
                note_passes(log, 10.0, [30.0, 60.0], **{kind: 1})
    return RunRecords(requests=requests, gaps=[GapLog()], fleets=[prefill, decode], end_ms=end_ms)


def toy_run(count: int = 400, seed: int = 1, workers: int = 2, scaling: bool = True) -> RunRecords:
    """A fleet that batches like an engine does, under a wave of arrivals; it grows and shrinks when ``scaling``."""
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(60.0 / workers, count) * (1.3 + np.sin(np.linspace(0.0, 9.0, count)))
    arrivals = np.cumsum(gaps).round(3)
    span = float(arrivals[-1])
    fleet = FleetRecords(gpus_per_worker=2, total_kv_tokens=POOL_TOKENS)
    records = RunRecords(fleets=[fleet])
    lives = [(0.0, np.inf)] * workers
    note = fleet.changes.append
    note(FleetChange(0.0, workers, 0, 0, FleetCause.START, tuple(range(workers))))
    if scaling:
        first, up, ready, down = workers, span * 0.2, span * 0.3, span * 0.75
        lives += [(ready, np.inf), (ready, down)]
        note(FleetChange(up, workers, 3, 0, FleetCause.ADDED, (first, first + 1, first + 2)))
        note(FleetChange(up + span * 0.05, workers, 2, 0, FleetCause.CANCELLED, (first + 2,)))
        note(FleetChange(ready, workers + 2, 0, 0, FleetCause.READY, (first, first + 1)))
        note(FleetChange(down, workers + 1, 0, 1, FleetCause.MARKED, (first + 1,)))
    queues: list[list[Request]] = [[] for _ in lives]
    for index, at in enumerate(arrivals.tolist()):
        request = Request(index, at, int(rng.integers(50, 900)), int(rng.lognormal(4.0, 0.8)) + 1)
        records.requests.append(request)
        open_to = [w for w, (since, until) in enumerate(lives) if since <= at < until]
        request.worker_id = open_to[index % len(open_to)]
        if index % 97 == 96:
            request.outcome, request.ended_ms = Outcome.REJECTED, at
        else:
            queues[request.worker_id].append(request)
    for worker_id, queue in enumerate(queues):
        records.gaps.append(_serve(fleet, worker_id, queue))
    records.end_ms = max(log.ends_ms[-1] for log in fleet.passes if log.ends_ms)
    if scaling:
        drained = max(fleet.passes[workers + 1].ends_ms, default=down)
        note(FleetChange(max(drained, down), workers + 1, 0, 0, FleetCause.REMOVED, (workers + 1,)))
    fleet.worker_seconds = workers * records.end_ms / 1000.0
    return records


def _serve(fleet: FleetRecords, worker_id: int, queue: list[Request]) -> GapLog:
    """Continuous batching without a memory limit: a pass a token, waiting prompts go first."""
    gaps, now, running = GapLog(), 0.0, []
    passes = PassLog(worker_id, 1)
    fleet.passes.append(passes)
    waiting = list(queue)
    while waiting or running:
        if not running and waiting[0].arrival_ms > now:
            now = waiting[0].arrival_ms
        admitted: list[Request] = []
        while waiting and waiting[0].arrival_ms <= now and len(running) + len(admitted) < MAX_RUNNING:
            admitted.append(waiting.pop(0))
        prompt_tokens = sum(r.input_tokens for r in admitted)
        context = sum(r.input_tokens + r.emitted_tokens for r in running)
        end = now + 6.0 + 0.04 * prompt_tokens + 0.12 * len(running) + context / 4000.0
        late = [r for r in waiting if r.arrival_ms <= now]
        note_passes(
            passes,
            now,
            [end],
            output_tokens=len(running) + len(admitted),
            prefill_requests=len(admitted),
            prefill_tokens=prompt_tokens,
            decode_requests=len(running),
            decode_kv_tokens=context,
            queued_requests=len(late),
            used_blocks=min(context + prompt_tokens, POOL_TOKENS),
        )
        for request in admitted:
            request.note_admission(now, request.input_tokens // 3)
            request.first_token_ms = end
        for request in running:
            if request.emitted_tokens == 1:
                request.second_token_ms = end
            gaps.add(now, end, 1)
        running += admitted
        for request in running:
            request.emitted_tokens += 1
            request.last_token_ms = end
            if request.emitted_tokens == request.output_tokens:
                request.outcome, request.ended_ms = Outcome.COMPLETED, end
        running = [r for r in running if r.outcome is None]
        now = end
    return gaps


def large_run(count: int = 100_000, workers: int = 40, passes: int = 20_000, seed: int = 3) -> RunRecords:
    """Many requests and passes with plausible numbers that do not add up to anything."""
    rng = np.random.default_rng(seed)
    arrivals = np.sort(rng.uniform(0.0, 7.2e6, count))
    ttft = rng.lognormal(4.5, 1.0, count) * (1.0 + 3.0 * (np.abs(arrivals - 4e6) < 4e5))
    gap = rng.lognormal(2.5, 0.3, count)
    fleet = FleetRecords(total_kv_tokens=POOL_TOKENS, worker_seconds=workers * 7200.0)
    records = RunRecords(fleets=[fleet], end_ms=7.2e6)
    for index in range(count):
        length = int(rng.integers(1, 400))
        request = Request(index, float(arrivals[index]), int(rng.integers(10, 4000)), length)
        request.note_admission(request.arrival_ms + float(ttft[index]) * 0.6, 0)
        first = request.arrival_ms + float(ttft[index])
        request.first_token_ms = first
        request.second_token_ms = first + float(gap[index]) if length > 1 else None
        request.last_token_ms = request.ended_ms = first + float(gap[index]) * (length - 1)
        request.emitted_tokens, request.outcome = length, Outcome.COMPLETED
        request.worker_id = index % workers
        records.requests.append(request)
    records.gaps.append(GapLog())
    records.gaps[0].add_stretch(0.0, np.cumsum(rng.lognormal(2.5, 0.3, 200_000)).tolist(), 7)
    fleet.changes.append(FleetChange(0.0, workers, 0, 0, FleetCause.START, tuple(range(workers))))
    for worker_id in range(workers):
        log, now = PassLog(worker_id, 1), 0.0
        fleet.passes.append(log)
        while now < 7.1e6:
            ends = (now + np.cumsum(rng.lognormal(5.0, 0.5, passes // workers))).tolist()
            prefill = int(rng.random() < 0.3)
            note_passes(
                log,
                now,
                ends,
                output_tokens=8,
                prefill_requests=prefill,
                decode_requests=int(rng.integers(0, 9)) + 1 - prefill,
                used_blocks=int(rng.integers(2000, POOL_TOKENS)),
            )
            now = ends[-1] + float(rng.exponential(60_000.0))
    return records
