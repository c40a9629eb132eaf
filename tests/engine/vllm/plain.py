"""The vLLM-style engine word for word: token by token, block by block, pass by pass (`spec 02`; `spec 04, 6.2`).

The twin the real scheduler is held against. It keeps token values, takes and gives back every block when the
specification says so, and knows nothing of stretches, lockstep, names or counts that stand for blocks.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from dynamo_sim.engine.gaps import GapLog
from dynamo_sim.engine.step import SignalKind, Step
from dynamo_sim.errors import SimulationError
from dynamo_sim.workload.request import Request
from tests.engine.twins import PlainStats
from tests.engine.vllm.plain_pool import PlainPool


class Work(NamedTuple):
    used: int
    prompt_tokens: int
    prefix: int
    prompt: int
    length: int


class PlainSequence:
    def __init__(self, request: Request, size: int, caching: bool) -> None:
        self.request = request
        self.prompt = request.input_tokens
        self.max_out = request.output_tokens
        if request.prompt is None or not caching:
            self.tokens: list[Any] = [("prompt", request.index, i) for i in range(self.prompt)]
        else:
            self.tokens = [value for value, length in request.prompt for _ in range(length)]
        self.planned = request.planned_output if caching and request.prompt is not None else None
        self.full = self.prompt // size
        self.gen = self.computed = self.allocated = 0
        self.status = "waiting"
        self.emitted_ms = 0.0

    def generate(self) -> None:
        token = ("output", self.request.index, self.gen) if self.planned is None else self.planned[self.gen]
        self.tokens.append(token)
        self.gen += 1

    def take_back(self) -> None:
        self.tokens.pop()
        self.gen -= 1


def spread(values: list[int]) -> float:
    mean = m2 = 0.0
    for n, value in enumerate(values, start=1):
        d = value - mean
        mean += d / n
        m2 += d * (value - mean)
    return m2 / len(values) if values else 0.0


class PlainVllm:
    """A scheduler; see `dynamo_sim.engine.scheduler.Scheduler`."""

    retries_matter = False
    lower_tiers = None

    def __init__(self, args: Any, timing: Any, interner: Any = None, sampler: Any = None) -> None:
        self.size = args.block_size
        self.pool = PlainPool(args.num_gpu_blocks, self.size, args.enable_prefix_caching)
        self.timing = timing
        self.sampler = sampler
        self.guaranteed = args.engine_type == "trtllm"
        self.fifo = args.preemption_mode == "fifo"
        self.chunked = args.enable_chunked_prefill
        self.pays_prefill = args.worker_type != "decode"
        self.pays_decode = args.worker_type != "prefill"
        self.max_seqs = args.max_num_seqs or 1 << 62
        self.max_tokens = args.max_num_batched_tokens or 1 << 62
        self.waiting: deque[PlainSequence] = deque()
        self.running: list[PlainSequence] = []
        self.gaps = GapLog()
        self.records_stats = True
        self.preemptions = 0

    request_count = property(lambda self: len(self.waiting) + len(self.running))
    waiting_count = property(lambda self: len(self.waiting))
    used_kv_tokens = property(lambda self: self.pool.active * self.size)
    total_kv_tokens = property(lambda self: self.pool.total * self.size)

    def receive(self, request: Request) -> None:
        sequence = PlainSequence(request, self.size, self.pool.caching)
        room = self.total_kv_tokens - sequence.prompt
        if self.guaranteed and room > 0:
            sequence.max_out = min(sequence.max_out, room)
        self.waiting.append(sequence)

    def finish(self, step: Step) -> None:
        pass

    def close(self) -> None:
        for r in (*self.running, *self.waiting):
            if r.gen:
                r.request.emitted_tokens = r.gen
                r.request.last_token_ms = r.emitted_ms

    def blocks(self, tokens: int) -> int:
        return -(-tokens // self.size)

    # ------------------------------------------------------------ a pass (02, 5)

    def start(self, now_ms: float, max_passes: int) -> Step:
        self.budget = self.max_tokens
        self.work: dict[PlainSequence, Work] = {}
        self.n = self.i = self.p = 0
        self.preempted_any = False
        self.schedule_running()
        admissions, rejected = self.admit(now_ms)
        prefill_ms = 0.0
        if self.n and self.pays_prefill:
            prefill_ms = self.timing.prefill_ms(self.n, max(0, self.i // self.n - self.p // self.n))
        start_ms = now_ms + prefill_ms
        step = Step(now_ms, [start_ms], True, 0, 0)
        step.admissions = admissions
        scheduled = dict(self.work)
        stats = self.scheduled_stats(scheduled)
        if self.sampler is None:
            self.emit(step, start_ms)
        else:
            self.emit_bursts(step, start_ms)
        step.signals += [(r.request, SignalKind.REJECTED) for r in rejected]
        self.queue_stats(stats)
        step.stats = stats  # type: ignore[assignment]
        busy = any(work.used for work in scheduled.values())
        step.progress = bool(admissions or step.tokens or step.signals or busy)
        return step

    def schedule_running(self) -> None:
        i = 0
        while i < len(self.running) and self.budget > 0:
            result = self.schedule(self.running[i], None)
            if result == "blocked":
                return
            if result == "scheduled":
                i += 1

    def admit(self, now_ms: float) -> tuple[int, list[PlainSequence]]:
        admissions = 0
        rejected: list[PlainSequence] = []
        while not self.preempted_any and len(self.running) < self.max_seqs and self.waiting:
            r = self.waiting[0]
            if r.status == "waiting" and self.needs_too_much(r):
                rejected.append(self.waiting.popleft())
                continue
            cached = self.decide(r)
            if cached is None:
                break
            before = self.budget
            if self.schedule(r, cached) != "scheduled":
                break
            self.waiting.remove(r)
            self.running.append(r)
            r.status = "running"
            r.request.note_admission(now_ms, cached)
            admissions += 1
            if self.budget == before == 0:
                break
        return admissions, rejected

    # ------------------------------------------------------------ admission (02, 8 and 9)

    def final_blocks(self, r: PlainSequence) -> int:
        return self.blocks(r.prompt + r.max_out)

    def needs_too_much(self, r: PlainSequence) -> bool:
        return (self.final_blocks(r) if self.guaranteed else self.blocks(len(r.tokens))) > self.pool.total

    def decide(self, r: PlainSequence) -> int | None:
        count, held = self.pool.cached(r.tokens, r.full)
        cached = min(count * self.size, r.prompt)
        held_blocks = min(held * self.size, r.prompt) // self.size
        available = self.pool.total - self.pool.active
        if self.guaranteed:
            needed = max(0, self.final_blocks(r) - held_blocks)
            for q in self.running:
                available -= max(0, self.final_blocks(q) - self.blocks(q.allocated))
            available = max(0, available)
        else:
            needed = self.blocks(len(r.tokens)) - held_blocks
        return None if needed > available else cached

    # ------------------------------------------------------------ one request (02, 6 and 7)

    def schedule(self, r: PlainSequence, cached: int | None) -> str:
        c = 0
        if r.computed == 0:
            c = min(self.pool.cached(r.tokens, r.full)[0] * self.size, r.prompt) if cached is None else cached
        before = r.computed + c
        known = max(0, len(r.tokens) - before)
        p_before = min(before, r.prompt)
        p_left = r.prompt - p_before
        if not self.chunked and p_left > 0 and p_left > self.budget:
            return "blocked"
        want = min(known, self.budget)
        if want == 0 and known > 0:
            return "blocked"
        target = before + want
        if target > r.allocated:
            first, last = self.blocks(r.allocated), self.blocks(target)
            while first < last and not self.pool.take(r.tokens, r.full, first, last):
                victim = self.preempt(r)
                if victim is None:
                    return "blocked"
                self.preempted_any = True
                undone = self.work.pop(victim, None)
                if undone is not None:
                    self.budget += undone.used
                    if undone.prompt_tokens > 0:
                        self.n -= 1
                        self.i -= undone.prefix + undone.prompt_tokens
                        self.p -= undone.prefix
                if victim is r:
                    return "preempted"
            r.allocated = target
        r.computed = target
        used = r.computed - before
        prompt_tokens = min(r.computed, r.prompt) - p_before
        self.work[r] = Work(used, prompt_tokens, p_before, r.prompt, len(r.tokens))
        if prompt_tokens > 0:
            self.n += 1
            self.i += p_before + prompt_tokens
            self.p += p_before
        self.budget -= used
        return "scheduled"

    def preempt(self, requester: PlainSequence | None) -> PlainSequence | None:
        if self.guaranteed:
            return None
        victim = self.running[0 if self.fifo else -1]
        if len(self.running) == 1 and (requester is victim or requester is None):
            raise SimulationError("a request preempts itself without end")
        self.running.remove(victim)
        self.preemptions += 1
        victim.status = "preempted"
        self.pool.release(victim.tokens, victim.full, self.blocks(victim.allocated))
        victim.computed = victim.allocated = 0
        self.waiting.appendleft(victim)
        return victim

    # ------------------------------------------------------------ tokens (02, 10)

    def ready(self) -> list[PlainSequence]:
        return [r for r in self.running if r.computed >= len(r.tokens) and r.gen < r.max_out]

    def decode_ms(self, ready: list[PlainSequence]) -> float:
        if not self.pays_decode:
            return 0.0
        mean = sum(len(r.tokens) for r in ready) // len(ready)
        return self.timing.decode_ms(self.pool.active * self.size, len(ready), mean)

    def emit(self, step: Step, start_ms: float) -> None:
        ready = self.ready()
        if not ready:
            return
        end_ms = start_ms + self.decode_ms(ready)
        for r in ready:
            while r in self.running:
                r.generate()
                opens = len(r.tokens) % self.size == 1
                if opens:
                    self.promote(r)
                    if not self.pool.open_partial():
                        r.take_back()
                        if self.preempt(r) is None:
                            break
                        continue
                step.tokens += 1
                if opens and r.gen < r.max_out:
                    r.allocated = len(r.tokens)
                self.note(r, step, end_ms)
                break
        step.forwards = step.tokens
        step.ends_ms[0] = end_ms if step.tokens else start_ms

    def emit_bursts(self, step: Step, start_ms: float) -> None:
        longest = len(self.sampler.rates) + 1
        while True:
            ready = self.ready()
            if not ready:
                return
            reserved = 0
            for r in ready:
                burst = min(longest, r.max_out - r.gen)
                reserved += self.blocks(len(r.tokens) + burst) - self.blocks(len(r.tokens))
            end_ms = start_ms + self.decode_ms(ready)
            if self.pool.reserve(reserved):
                break
            if self.preempt(None) is None:
                return
        bursts = [self.sampler.burst(r.max_out - r.gen) for r in ready]
        for r, burst in zip(ready, bursts, strict=True):
            for _ in range(burst):
                r.generate()
                if len(r.tokens) % self.size == 1:
                    self.promote(r)
                    reserved -= 1
                step.tokens += 1
                self.note(r, step, end_ms)
            if r.gen < r.max_out:
                r.allocated = len(r.tokens)
                r.computed = len(r.tokens) - 1
        self.pool.free += reserved
        step.forwards = len(ready)
        step.ends_ms[0] = end_ms

    def promote(self, r: PlainSequence) -> None:
        """The token just generated begins a block: the one before it is full now, unless it was before."""
        filled = len(r.tokens) // self.size - 1
        if filled >= r.full:
            self.pool.promote(r.tokens, filled)
            r.full = filled + 1

    def note(self, r: PlainSequence, step: Step, end_ms: float) -> None:
        request = r.request
        if r.gen == 1:
            request.first_token_ms = end_ms
        else:
            if r.gen == 2:
                request.second_token_ms = end_ms
            self.gaps.add(r.emitted_ms, end_ms, 1)
        r.emitted_ms = end_ms
        if r.gen < r.max_out:
            if r.gen == 1:
                step.signals.append((request, SignalKind.FIRST_TOKEN))
            return
        self.pool.release(r.tokens, r.full, self.blocks(len(r.tokens)))
        self.running.remove(r)
        request.emitted_tokens = r.gen
        request.last_token_ms = end_ms
        step.signals.append((request, SignalKind.COMPLETED))

    # ------------------------------------------------------------ forward-pass metrics (02, 11)

    def scheduled_stats(self, scheduled: dict[PlainSequence, Work]) -> PlainStats:
        prefills = [w for w in scheduled.values() if w.prompt_tokens > 0]
        decodes = [w.length for w in scheduled.values() if w.prompt_tokens == 0]
        return PlainStats(
            num_prefill_requests=len(prefills),
            sum_prefill_tokens=sum(w.used for w in prefills),
            var_prefill_length=spread([w.prompt for w in prefills]),
            sum_prefill_kv_tokens=sum(w.prefix for w in prefills),
            num_decode_requests=len(decodes),
            sum_decode_kv_tokens=sum(decodes),
            var_decode_kv_tokens=spread(decodes),
            used_kv_tokens=(self.used_kv_tokens,),
        )

    def queue_stats(self, stats: PlainStats) -> None:
        prompts = [r.prompt for r in self.waiting if r.status == "waiting"]
        lengths = [len(r.tokens) for r in self.waiting if r.status == "preempted"]
        stats.num_queued_prefill, stats.num_queued_decode = len(prompts), len(lengths)
        stats.sum_queued_prefill_tokens, stats.sum_queued_decode_kv_tokens = sum(prompts), sum(lengths)
        stats.var_queued_prefill_length, stats.var_queued_decode_kv_tokens = spread(prompts), spread(lengths)
