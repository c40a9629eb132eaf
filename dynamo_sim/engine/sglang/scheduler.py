"""The SGLang-style scheduler: what one worker does in a pass (`spec 05`)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dynamo_sim.engine.sglang import memory
from dynamo_sim.engine.sglang.admission import Admission, Piece, admit
from dynamo_sim.engine.sglang.batch import RunningBatch
from dynamo_sim.engine.sglang.dead_end import dead_end_reason, refuse_dead_end
from dynamo_sim.engine.sglang.decode import decode, emit
from dynamo_sim.engine.sglang.queue import WaitingQueue
from dynamo_sim.engine.sglang.ratio import NewTokenRatio
from dynamo_sim.engine.sglang.sequence import SglangSequence
from dynamo_sim.engine.sglang.stats import add_queue, scheduled_stats, stretch_stats
from dynamo_sim.engine.sglang.stretch import plan_stretch
from dynamo_sim.engine.step import Step
from dynamo_sim.kv.kv_events import KvEvent, PageCopies
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.kv.radix_cache import RadixCache
from dynamo_sim.metrics.gaps import GapLog
from dynamo_sim.timing.pass_timing import PassTiming
from dynamo_sim.timing.speculative import BurstSampler
from dynamo_sim.workload.request import Request

if TYPE_CHECKING:
    from dynamo_sim.scenario.engine_args import EngineArgs

UNLIMITED = 1 << 62

MOST_IDLE_PASSES = 1 << 17
"""Passes in a row in which requests run and none gets a token; without a time cap they would never end."""


class SglangScheduler:
    """Prefill and decode in every pass, a prefix tree, a reserve for outputs to come, retraction.

    `start` admits what it can. When that is nobody it plans a stretch of decode passes, which `finish`
    carries out; otherwise it carries out its one pass at once. Only a ``capped`` run may idle without end.
    """

    def __init__(
        self,
        args: EngineArgs,
        timing: PassTiming,
        interner: PrefixInterner,
        sampler: BurstSampler | None = None,
        capped: bool = False,
    ) -> None:
        options = args.sglang
        self.page_tokens = args.block_size
        self.pool_tokens = args.num_gpu_blocks * args.block_size
        self.max_sequences = args.max_num_seqs or UNLIMITED
        self.input_tokens = options.max_prefill_tokens
        self.chunk_tokens = options.chunked_prefill_size
        self.clip_tokens = options.clip_max_new_tokens
        self.ratio = NewTokenRatio(options.schedule_conservativeness)
        self.timing = timing
        self.interner = interner
        self.sampler = sampler
        self.capped = capped
        self.cache = RadixCache(self.pool_tokens, self.page_tokens)
        self.queue = WaitingQueue(options.schedule_policy == "lpm")
        self.batch = RunningBatch(self.page_tokens, self.clip_tokens)
        # Every pass lowers the ratio, also a fruitless one. Only in a queue sorted by prefix can an arrival
        # end a row of fruitless passes and meet the ratio they have left.
        self.retries_matter = self.queue.by_prefix
        self.gaps = GapLog()
        self.observed = False
        self.preemptions = 0
        self.emitted_ms = 0.0  # when the batch got its latest tokens
        self.with_one_token: list[SglangSequence] = []  # members that wait for their second
        self.horizon = 64  # passes to plan ahead in the next stretch
        self._stretch: Step | None = None
        self.kv_events_from_ms = math.inf
        self._visible_events: list[KvEvent] = []
        self._idle_passes = 0

    # ------------------------------------------------------------ what the fleet sees

    @property
    def request_count(self) -> int:
        return len(self.queue) + len(self.batch)

    @property
    def waiting_count(self) -> int:
        return len(self.queue)

    @property
    def used_kv_tokens(self) -> int:
        # Slots given back twice can make more of them than there are.
        return max(0, self.pool_tokens - self.cache.available)

    @property
    def block_size(self) -> int:
        return self.page_tokens

    def kv_tokens_at(self, step: Step | None, now_ms: float) -> int:
        taken = 0
        if self._stretch is not None and step is not None:
            taken = bisect_right(step.ends_ms, now_ms) * self.batch.growing
        return min(self.pool_tokens, self.used_kv_tokens + taken)

    @property
    def total_kv_tokens(self) -> int:
        return self.pool_tokens

    def publish_kv_events(self) -> None:
        self.cache.copies = PageCopies()

    def take_kv_events(self, now_ms: float, starts_included: bool) -> Sequence[KvEvent]:
        copies, stretch = self.cache.copies, self._stretch
        if copies is None:
            return ()
        self.kv_events_from_ms = math.inf
        if stretch is not None:
            # In the middle of a stretch nothing happens to the cache but evictions. Those of the passes that have
            # ended are made now; that changes nothing `finish` asks for, a stretch looks at `available` only.
            ended = min(bisect_right(stretch.ends_ms, now_ms), len(stretch.ends_ms) - 1)
            self.cache.evict(ended * self.batch.growing - self.cache.free)
            self._visible_events += copies.log.take()
            self._note_next_eviction(stretch)
        events, self._visible_events = self._visible_events, []
        return events

    def _note_next_eviction(self, stretch: Step) -> None:
        """Find the end of the first pass of a stretch that has to evict, the last one excepted."""
        if self.batch.growing:
            passes = self.cache.free // self.batch.growing
            if passes < len(stretch.ends_ms) - 1:
                self.kv_events_from_ms = min(self.kv_events_from_ms, stretch.ends_ms[passes])

    def receive(self, request: Request) -> None:
        self.queue.append(SglangSequence(request, self.interner))

    def start(self, now_ms: float, max_passes: int, until_ms: float = math.inf) -> Step:
        queue = self.queue
        admission: Admission | None = None
        if queue:
            queue.sort(self.cache)
            admission = admit(self, now_ms)
            if admission.out_of_memory:
                self.ratio.reset()
        pieces = admission.pieces if admission is not None else []
        if self.batch.members and not pieces and self.sampler is None:
            step = plan_stretch(self, now_ms, max_passes, admission)
            if step is not None:
                step.cut(until_ms)
                self._stretch = step
                if self.cache.copies is not None:
                    self._note_next_eviction(step)
                if self.observed:
                    step.stats = stretch_stats(self, len(step.ends_ms))
                return step
        return self._single_pass(now_ms, pieces)

    def finish(self, step: Step) -> None:
        if self._stretch is not None:
            self._finish_stretch(step)
        if self.cache.copies is not None:
            self._visible_events += self.cache.copies.log.take()
            self.kv_events_from_ms = -math.inf if self._visible_events else math.inf

    def _finish_stretch(self, step: Step) -> None:
        self._stretch = None
        batch, cache = self.batch, self.cache
        passes = len(step.ends_ms)
        self.horizon = max(
            8, 2 * passes
        )  # stretches go about as far as the last one, before something cuts them
        if batch.growing:
            self._idle_passes = 0
            needed = passes * batch.growing
            cache.evict(needed - cache.free)
            cache.free -= needed
            self.gaps.add_stretch(self.emitted_ms, step.ends_ms, batch.growing)
            for sequence in self.with_one_token:
                sequence.request.second_token_ms = step.ends_ms[0]
            self.with_one_token.clear()
            if passes > 1:
                batch.advance(passes - 1)
            emit(self, step, [])
        else:
            self._idle(passes)
        self.ratio.lower(passes)

    def live_requests(self) -> list[Request]:
        return [sequence.request for sequence in (*self.batch.members.values(), *self.queue)]

    def close(self) -> None:
        for sequence in self.batch.members.values():
            sequence.generated = self.batch.generated(sequence)
            if not sequence.fresh:
                sequence.emitted_ms = self.emitted_ms
        for sequence in (*self.batch.members.values(), *self.queue):
            if sequence.generated:
                sequence.request.emitted_tokens = sequence.generated
                sequence.request.last_token_ms = sequence.emitted_ms

    def stuck_reason(self) -> str | None:
        return dead_end_reason(self)

    # ------------------------------------------------------------ one pass

    def _single_pass(self, now_ms: float, pieces: list[Piece]) -> Step:
        """Prefill and decode (`spec 05, 8`, steps 5 to 11)."""
        step = Step(now_ms, [now_ms + self._prefill_ms(pieces)], True, 0, 0)
        step.admissions = len(pieces)
        newcomers = self._place(pieces)
        stats = scheduled_stats(self, pieces) if self.observed else None
        running = len(self.batch)
        victims = decode(self, step, newcomers, stats)
        if step.tokens:
            self._idle_passes = 0
        elif running:
            if not pieces and not victims and step.end_ms == now_ms:
                refuse_dead_end(self)
            self._idle(1)
        if victims:
            self.ratio.reset()
            self.queue.push_front(victims)
        self.ratio.lower(1)
        step.progress = bool(pieces or running)
        if stats is not None:
            add_queue(self, stats)
            step.stats = stats
        return step

    def _idle(self, passes: int) -> None:
        self._idle_passes += passes
        if self._idle_passes > MOST_IDLE_PASSES and not self.capped:
            refuse_dead_end(self)

    def _prefill_ms(self, pieces: list[Piece]) -> float:
        count = len(pieces)
        if not count:
            return 0.0
        ends = sum(piece.end for piece in pieces)
        reused = sum(piece.reused for piece in pieces)
        new_tokens = ends // count - reused // count
        return self.timing.prefill_ms(count, new_tokens) if new_tokens > 0 else 0.0

    def _place(self, pieces: list[Piece]) -> list[SglangSequence]:
        """Let those run that have all their tokens now, and return them; the others wait for more."""
        newcomers = []
        for sequence, _, _, end in pieces:
            if end < sequence.tokens:
                memory.keep(self.cache, sequence, end // self.page_tokens, self.cache.now())
                self.queue.push_front((sequence,))
            else:
                self.batch.add(sequence)
                newcomers.append(sequence)
        return newcomers
