"""The truth about a fleet at any time, for whoever exports metrics from it."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator

from dynamo_sim.engine.roles import Stage
from dynamo_sim.engine.step import Step
from dynamo_sim.fleet.fleet import Worker
from dynamo_sim.workload.request import Request

Observation = tuple[float, float, int]
"""When (ms), what (ms), how often."""


FIRST_TOKENS = frozenset(
    ("ttft", "queue_time", "prompt_tokens", "prefix_hits", "prefix_queries", "active_prefill_tokens")
)
"""Metrics that follow from admissions and first tokens."""


class WorkerTally:
    """What one worker has done so far.

    Nothing here stops a stretch: what a pass of it has brought by now follows from its pass ends. Times in ms.

    Args:
        worker: the worker.
        created_ms: when it was made.
        ready_ms: since when it is active, or None.
        asked: names of the metrics that somebody reads; what nobody reads is not recorded. None for all.
    """

    def __init__(
        self, worker: Worker, created_ms: float, ready_ms: float | None, asked: frozenset[str] | None = None
    ) -> None:
        def is_read(*names: str) -> bool:
            return asked is None or not asked.isdisjoint(names)

        self.worker = worker
        self.created_ms = created_ms
        self.ready_ms = ready_ms
        self.started = 0
        self.finished = 0
        self._records_first_tokens = is_read(*FIRST_TOKENS)
        self._records_ends = is_read("e2e", "tpot")
        self._records_in_flight_s = is_read("in_flight_s")
        self._prompt_tokens = self._prefix_hits = self._prefix_queries = 0
        self._tokens = 0
        self._busy_ms = 0.0
        self._since_ms: dict[Request, float] = {}
        self._live_since_ms = self._lived_ms = 0.0
        self._gap_mark = (0, 0, 0)
        self._unadmitted: dict[Request, None] = {}
        self._without_token: dict[Request, None] = {}
        self._observed: dict[str, deque[Observation]] = {
            name: deque() for name in ("ttft", "tpot", "e2e", "queue_time", "itl")
        }

    # ------------------------------------------------------------ the fleet reports

    def dispatched(self, request: Request, now_ms: float) -> None:
        """A request has come to this worker."""
        self.started += 1
        if self._records_in_flight_s:
            self._live_since_ms += now_ms
            self._since_ms[request] = now_ms
        if self._records_first_tokens:
            self._unadmitted[request] = None
            self._without_token[request] = None

    def ended(self, request: Request, now_ms: float) -> None:
        """A request has ended here."""
        self.finished += 1
        if self._records_in_flight_s:
            since_ms = self._since_ms.pop(request)
            self._live_since_ms -= since_ms
            self._lived_ms += now_ms - since_ms
        if self._records_first_tokens:
            if request in self._unadmitted:
                self._admitted(request)
            if request in self._without_token:
                self._first_token_emitted(request)
        if self._records_ends and request.first_token_ms is not None and request.last_token_ms is not None:
            self._observed["e2e"].append((now_ms, max(request.last_token_ms - request.arrival_ms, 0.0), 1))
            if request.emitted_tokens > 1:
                tpot = (request.last_token_ms - request.first_token_ms) / (request.emitted_tokens - 1)
                self._observed["tpot"].append((now_ms, max(tpot, 0.0), 1))

    def passed(self, step: Step) -> None:
        """A step of it has ended."""
        self._tokens += step.tokens * len(step.ends_ms)
        self._busy_ms += step.ends_ms[-1] - step.start_ms

    # ------------------------------------------------------------ questions

    @property
    def live_requests(self) -> int:
        """Requests here that have not ended."""
        return self.started - self.finished

    def value(self, name: str, now_ms: float) -> float | None:
        """A gauge or counter of the catalogue at the present time; None for one that is not recorded."""
        scheduler, step = self.worker.scheduler, self.worker.step
        if name == "in_flight":
            return float(self.live_requests)
        if name == "waiting":
            return float(self._waiting)
        if name == "running":
            return float(self.live_requests - self._waiting)
        if name == "kv_usage":
            return scheduler.kv_tokens_at(step, now_ms) / scheduler.total_kv_tokens
        if name == "active_decode_blocks":
            return scheduler.kv_tokens_at(step, now_ms) / scheduler.block_size
        if name == "active_prefill_tokens":
            self._catch_up(now_ms)
            return float(sum(request.input_tokens for request in self._without_token))
        if name == "requests_started":
            return float(self.started)
        if name == "requests_finished":
            return float(self.finished)
        if name == "generated_tokens":
            done = 0 if step is None else bisect_right(step.ends_ms, now_ms) * step.tokens
            return float(self._tokens + done)
        if name == "busy_s":
            in_progress_ms = 0.0 if step is None else now_ms - step.start_ms
            return (self._busy_ms + in_progress_ms) / 1000.0
        if name == "in_flight_s":
            return (self._lived_ms + self.live_requests * now_ms - self._live_since_ms) / 1000.0
        if name == "preemptions":
            return float(scheduler.preemptions)
        self._catch_up(now_ms)
        counts = {
            "prompt_tokens": self._prompt_tokens,
            "prefix_hits": self._prefix_hits,
            "prefix_queries": self._prefix_queries,
        }
        return float(counts[name]) if name in counts else None

    def observations(self, metric: str, until_ms: float) -> Iterator[Observation]:
        """What a histogram has observed up to that time and not yet handed out."""
        self._catch_up(until_ms)
        if metric == "itl":
            scheduler = self.worker.scheduler
            scheduler.note_gaps_until(until_ms)
            gaps, self._gap_mark = scheduler.gaps.since(self._gap_mark, until_ms)
            self._observed["itl"].extend(gaps)
        waiting = self._observed[metric]
        while waiting and waiting[0][0] <= until_ms:
            yield waiting.popleft()

    # ------------------------------------------------------------ inside

    @property
    def _waiting(self) -> int:
        """Requests not admitted, those included that wait for the pass in progress to end."""
        held_back = self.live_requests - self.worker.in_flight
        return self.worker.scheduler.waiting_count + held_back

    def _catch_up(self, now_ms: float) -> None:
        """Take note of admissions and first tokens; both are written when a pass starts."""
        for waiting, at_ms, note in (
            (self._unadmitted, self._admitted_ms, self._admitted),
            (self._without_token, self._first_token_ms, self._first_token_emitted),
        ):
            for request in [r for r in waiting if (when := at_ms(r)) is not None and when <= now_ms]:
                note(request)

    def _admitted_ms(self, request: Request) -> float | None:
        """Start of the pass of this worker that took the request in; None before it."""
        return request.first_admit_ms

    def _first_token_ms(self, request: Request) -> float | None:
        """When the request got its first token from this worker; None before it."""
        return request.first_token_ms

    def _admitted(self, request: Request) -> None:
        del self._unadmitted[request]
        admitted_ms = self._admitted_ms(request)
        if admitted_ms is None:
            return  # rejected
        self._note_wait(admitted_ms, request.arrival_ms)
        self._prefix_hits += request.first_reused_tokens
        self._prefix_queries += request.input_tokens

    def _note_wait(self, admitted_ms: float, since_ms: float) -> None:
        self._observed["queue_time"].append((admitted_ms, max(admitted_ms - since_ms, 0.0), 1))

    def _first_token_emitted(self, request: Request) -> None:
        del self._without_token[request]
        token_ms = self._first_token_ms(request)
        if token_ms is not None:
            self._note_first_token(request, token_ms)

    def _note_first_token(self, request: Request, token_ms: float) -> None:
        self._observed["ttft"].append((token_ms, max(token_ms - request.arrival_ms, 0.0), 1))
        self._prompt_tokens += request.input_tokens


class PrefillTally(WorkerTally):
    """What a worker of a prefill fleet has done: its requests end with the one token that ends their prefill."""

    def ended(self, request: Request, now_ms: float) -> None:
        is_computed = request.first_admit_ms is not None
        if self._records_first_tokens and is_computed and request in self._without_token:
            del self._without_token[request]
            self._note_first_token(request, now_ms)
        super().ended(request, now_ms)

    def _first_token_ms(self, request: Request) -> float | None:
        return None  # it is known when the request ends here


class DecodeTally(WorkerTally):
    """What a worker of a decode fleet has done: its requests come with their destination, and look nothing up."""

    def __init__(
        self, worker: Worker, created_ms: float, ready_ms: float | None, asked: frozenset[str] | None = None
    ) -> None:
        super().__init__(worker, created_ms, ready_ms, asked)
        self._reserving_since_ms: dict[Request, float] = {}

    def dispatched(self, request: Request, now_ms: float) -> None:
        super().dispatched(request, now_ms)
        if self._records_first_tokens:
            self._reserving_since_ms[request] = now_ms

    @property
    def _waiting(self) -> int:
        """Requests that have no place in the batch yet, those without room or without their KV included."""
        return super()._waiting + len(self.worker.scheduler.handoffs.requests())

    def _admitted_ms(self, request: Request) -> float | None:
        return None if request.handoff is None else request.handoff.decode_admit_ms

    def _admitted(self, request: Request) -> None:
        del self._unadmitted[request]
        since_ms = self._reserving_since_ms.pop(request)
        admitted_ms = self._admitted_ms(request)
        if admitted_ms is not None:
            self._note_wait(admitted_ms, since_ms)


TALLIES = {Stage.AGGREGATED: WorkerTally, Stage.PREFILL: PrefillTally, Stage.DECODE: DecodeTally}
"""The tally of a worker, by what its fleet does."""
