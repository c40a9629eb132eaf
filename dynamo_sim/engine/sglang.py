"""The SGLang-style scheduler: what one worker does in a pass (`spec 05`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_sim.engine import sglang_memory as memory
from dynamo_sim.engine.sglang_admission import Admission, admit
from dynamo_sim.engine.sglang_batch import RunningBatch
from dynamo_sim.engine.sglang_decode import decode, emit
from dynamo_sim.engine.sglang_queue import WaitingQueue
from dynamo_sim.engine.sglang_sequence import SglangSequence
from dynamo_sim.engine.sglang_stretch import plan_stretch, stretch_stats
from dynamo_sim.engine.sglang_trouble import refuse_idling, refuse_standstill, why_stuck
from dynamo_sim.engine.step import PassStats, Step
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.kv.radix_cache import RadixCache
from dynamo_sim.metrics.gaps import GapLog
from dynamo_sim.metrics.variance import variance, variance_of_sums
from dynamo_sim.timing.pass_timing import PassTiming
from dynamo_sim.timing.speculative import BurstSampler
from dynamo_sim.workload.request import Request

if TYPE_CHECKING:
    from dynamo_sim.scenario.engine_args import EngineArgs

UNLIMITED = 1 << 62
MOST_IDLE_PASSES = 1 << 22
"""Decode passes in a row that may go by without any token."""


class SglangScheduler:
    """Prefill and decode in every pass, a prefix tree, a reserve for outputs to come, retraction of running requests.

    `start` admits what it can; when that is nobody, it plans a stretch of decode passes and `finish` carries it out,
    otherwise it carries out the one pass at once.
    """

    def __init__(
        self,
        args: EngineArgs,
        timing: PassTiming,
        interner: PrefixInterner,
        sampler: BurstSampler | None = None,
    ) -> None:
        options = args.sglang
        self.page_tokens = args.block_size
        self.pool_tokens = args.num_gpu_blocks * args.block_size
        self.max_sequences = args.max_num_seqs or UNLIMITED
        self.input_tokens = options.max_prefill_tokens
        self.chunk_tokens = options.chunked_prefill_size
        self.clip_tokens = options.clip_max_new_tokens
        self.initial_ratio = 0.7 * options.schedule_conservativeness
        self.lowest_ratio = self.initial_ratio * 0.14
        self.ratio_step = (self.initial_ratio - self.lowest_ratio) / 600.0
        self.ratio = self.initial_ratio
        self.timing = timing
        self.interner = interner
        self.sampler = sampler
        self.cache = RadixCache(self.pool_tokens, self.page_tokens)
        self.queue = WaitingQueue(options.schedule_policy == "lpm")
        self.batch = RunningBatch(self.page_tokens, self.clip_tokens)
        # Every pass, also a fruitless one, lowers the ratio; only in a queue sorted by prefix can a request come along
        # that ends a row of them.
        self.retries_matter = self.queue.by_prefix
        self.gaps = GapLog()
        self.observed = False
        self.emitted_ms = 0.0  # when the batch got its latest tokens
        self.with_one_token: list[SglangSequence] = []  # members that wait for their second
        self.horizon = 64  # passes to plan ahead in the next stretch
        self._in_stretch = False
        self._idle_passes = 0

    # ------------------------------------------------------------ what the fleet sees

    @property
    def request_count(self) -> int:
        return len(self.queue) + len(self.batch)

    @property
    def waiting_count(self) -> int:
        return len(self.queue)

    @property
    def running_count(self) -> int:
        return len(self.batch)

    @property
    def used_kv_tokens(self) -> int:
        return max(0, self.pool_tokens - self.cache.available)

    @property
    def total_kv_tokens(self) -> int:
        return self.pool_tokens

    def receive(self, request: Request) -> None:
        self.queue.append(SglangSequence(request, self.interner))

    def start(self, now_ms: float, max_passes: int) -> Step:
        queue, batch = self.queue, self.batch
        admission = None
        if queue:
            queue.sort(self.cache)
            admission = admit(self, now_ms)
            if admission.out_of_memory:
                self.ratio = self.initial_ratio
        if batch.members and self.sampler is None and not (admission and admission.pieces):
            step = plan_stretch(self, now_ms, max_passes, admission)
            if step is not None:
                self._in_stretch = True
                if self.observed:
                    step.stats = stretch_stats(self, step)
                return step
        return self._single_pass(now_ms, admission or Admission())

    def finish(self, step: Step) -> None:
        if not self._in_stretch:
            return
        self._in_stretch = False
        batch, cache = self.batch, self.cache
        passes = len(step.ends_ms)
        self.horizon = max(8, 2 * passes)
        if not batch.growing:
            batch.advance(passes)
            self._idle_passes += passes
            if self._idle_passes > MOST_IDLE_PASSES:
                refuse_idling(self)
        else:
            self._idle_passes = 0
            needed = passes * batch.growing
            cache.evict(needed - cache.free)
            cache.free -= needed
            self.gaps.add_stretch(self.emitted_ms, step.ends_ms, batch.growing)
            for sequence in self.with_one_token:
                sequence.request.second_token_ms = step.ends_ms[0]
            self.with_one_token.clear()
            batch.advance(passes - 1)
            emit(self, step, [])
        self._lower_ratio(passes)

    def close(self) -> None:
        for sequence in self.batch.members.values():
            generated = self.batch.generated(sequence)
            if generated:
                request = sequence.request
                request.emitted_tokens = generated
                request.last_token_ms = sequence.emitted_ms if sequence.fresh else self.emitted_ms
        for sequence in self.queue:
            if sequence.generated:
                sequence.request.emitted_tokens = sequence.generated
                sequence.request.last_token_ms = sequence.emitted_ms

    def stuck_reason(self) -> str | None:
        return why_stuck(self)

    # ------------------------------------------------------------ one pass

    def _single_pass(self, now_ms: float, admission: Admission) -> Step:
        cache, batch, pieces = self.cache, self.batch, admission.pieces
        prefill_ms = 0.0
        newcomers = []
        if pieces:
            count = len(pieces)
            ends = reused = 0
            for piece in pieces:
                ends += piece.end
                reused += piece.reused
            new_tokens = max(0, ends // count - reused // count)
            if new_tokens:
                prefill_ms = self.timing.prefill_ms(count, new_tokens)
            for sequence, _, _, end in pieces:
                if end < sequence.prompt_tokens + sequence.generated:
                    memory.keep(cache, sequence, end // self.page_tokens, cache.now())
                    self.queue.push_front((sequence,))
                else:
                    batch.add(sequence)
                    newcomers.append(sequence)
        step = Step(now_ms, [now_ms + prefill_ms], True, 0, 0)
        step.admissions = len(pieces)
        stats = self._scheduled_stats(admission) if self.observed else None
        running = len(batch)
        victims = decode(self, step, newcomers, stats)
        if step.tokens or pieces:
            self._idle_passes = 0
        elif running and not victims and step.end_ms == now_ms:
            refuse_standstill(self)
        if victims:
            self.ratio = self.initial_ratio
            self.queue.push_front(victims)
        self._lower_ratio(1)
        step.progress = bool(pieces or running)
        if stats is not None:
            self.queue.fill(stats)
            step.stats = stats
        return step

    def _lower_ratio(self, passes: int) -> None:
        ratio, step, lowest = self.ratio, self.ratio_step, self.lowest_ratio
        for _ in range(passes):
            if ratio == lowest and step >= 0.0:
                break
            ratio -= step
            if ratio < lowest:
                ratio = lowest
        self.ratio = ratio

    def _scheduled_stats(self, admission: Admission) -> PassStats:
        """What the pass does (`spec 05, 14`), before anybody is retracted for it."""
        batch, pieces = self.batch, admission.pieces
        return PassStats(
            num_prefill_requests=len(pieces),
            sum_prefill_tokens=sum(piece.tokens for piece in pieces),
            var_prefill_length=variance(piece.sequence.prompt_tokens for piece in pieces),
            sum_prefill_kv_tokens=sum(piece.reused for piece in pieces),
            num_decode_requests=len(batch),
            sum_decode_kv_tokens=batch.tokens,
            var_decode_kv_tokens=variance_of_sums(len(batch), batch.tokens, batch.squared_tokens),
            used_kv_tokens=(self.used_kv_tokens,),
        )
