"""The SGLang-style scheduler: what one worker does in a pass (`spec 05`)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dynamo_sim.engine.pass_log import PassLog, PassNumbers
from dynamo_sim.engine.pass_stats import PassStats
from dynamo_sim.engine.roles import Stage, timing_of_role
from dynamo_sim.engine.sglang import memory
from dynamo_sim.engine.sglang.admission import Admitted, Chunk, admit
from dynamo_sim.engine.sglang.batch import RunningBatch
from dynamo_sim.engine.sglang.bursts import BurstDecoding
from dynamo_sim.engine.sglang.dead_end import dead_end_reason
from dynamo_sim.engine.sglang.decode import Decoding
from dynamo_sim.engine.sglang.handoff import SglangHandoffs
from dynamo_sim.engine.sglang.limits import Limits
from dynamo_sim.engine.sglang.queue import WaitingQueue
from dynamo_sim.engine.sglang.ratio import NewTokenRatio
from dynamo_sim.engine.sglang.sequence import SglangSequence
from dynamo_sim.engine.sglang.stats import scheduled_numbers, scheduled_stats, stretch_stats
from dynamo_sim.engine.sglang.stretch import (
    ends_of_idle_passes,
    ends_of_passes,
    passes_until,
    passes_until_event,
    undecided_passes,
)
from dynamo_sim.engine.step import Step
from dynamo_sim.engine.token_log import HiddenTokenLog, TokenLog
from dynamo_sim.errors import SimulationError
from dynamo_sim.kv.kv_events import KvEvent, PageCopies
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.kv.radix_cache import RadixCache
from dynamo_sim.timing.pass_timing import PassTiming
from dynamo_sim.timing.speculative import BurstSampler
from dynamo_sim.workload.request import Request

if TYPE_CHECKING:
    from dynamo_sim.scenario.engine_args import EngineArgs

MAX_IDLE_PASSES = 1 << 17
"""More passes in a row in which requests run and none gets a token end a run that has no time cap."""

MIN_PLANNED_PASSES = 8
"""A stretch is planned at least that far; what was planned too far is cut off again."""

MIN_PLANNED_DECODES = 32
"""The same on a decode worker, where short stretches (a transfer long) come between long ones."""


class SglangScheduler:
    """Prefill and decode in every pass, a prefix tree, a reserve for outputs to come, retraction.

    `start` admits what it can. When that is nobody it plans a stretch of decode passes, which `finish`
    carries out; otherwise it carries out its one pass at once.

    Args:
        args: the engine arguments.
        timing: durations of passes.
        interner: names the pages of prompts.
        sampler: draws bursts of speculative decoding; None without it.
        capped: whether the run ends at a time of its own, so that requests without an end are no error.
        stage: what the worker does.
    """

    def __init__(
        self,
        args: EngineArgs,
        timing: PassTiming,
        interner: PrefixInterner,
        sampler: BurstSampler | None = None,
        capped: bool = False,
        stage: Stage = Stage.AGGREGATED,
    ) -> None:
        self.interner = interner
        self.limits = limits = Limits.of(args)
        self.ratio = NewTokenRatio(args.sglang.schedule_conservativeness)
        self.cache = cache = RadixCache(limits.pool_tokens, limits.page_tokens)
        self.queue = WaitingQueue(args.sglang.schedule_policy == "lpm")
        self.batch = batch = RunningBatch(limits.page_tokens, limits.clip_tokens)
        decodes_only = stage is Stage.DECODE
        self.tokens = tokens = HiddenTokenLog() if stage is Stage.PREFILL else TokenLog()
        self.handoffs = handoffs = SglangHandoffs(batch, self.queue, cache, tokens, interner)
        # A prefill worker pays for the decode step that ends its prompts (`spec 05, 9`).
        self._timing = timing = timing_of_role(timing, "decode") if decodes_only else timing
        self._decoding = (
            Decoding(batch, cache, timing, tokens, handoffs, limits.pool_tokens)
            if sampler is None
            else BurstDecoding(batch, cache, timing, tokens, handoffs, limits.pool_tokens, sampler)
        )
        self._note_admission = Request.note_decode_admission if decodes_only else Request.note_admission
        self._in_lockstep = sampler is None
        self._capped = capped
        self.lower_tiers = None
        # Every pass lowers the ratio, also one without progress. Only in a queue sorted by prefix can an arrival
        # end a row of such passes and meet the ratio they have left.
        # The releases and activations of handoffs can end one, too.
        self.retries_matter = self.queue.by_prefix or stage is not Stage.AGGREGATED
        self.gaps = tokens.gaps
        self.records_stats = False
        self.pass_log: PassLog | None = None
        self.kv_events_from_ms = math.inf
        self._visible_events: list[KvEvent] = []
        self._stretch: Step | None = None  # the step in progress, when `finish` has to carry it out
        self._passes_done = 0  # of that step: 1 if it begins with a pass that was carried out at its start
        self._planned_passes = 64  # how far to plan the next stretch
        self._min_planned = MIN_PLANNED_DECODES if decodes_only else MIN_PLANNED_PASSES
        self._first_tokens_unheard = decodes_only  # by whoever routes to this worker (`spec 07, 6.1`)
        self._idle_passes = 0
        self._waiting, self._members = self.queue.waiting, batch.members

    # ------------------------------------------------------------ what the fleet sees

    @property
    def request_count(self) -> int:
        return len(self._waiting) + len(self._members) + len(self.handoffs.ready)

    @property
    def waiting_count(self) -> int:
        return len(self._waiting) + len(self.handoffs.ready)

    @property
    def waiting_tokens(self) -> int:
        return self.queue.arrivals.total + self.queue.returned.total

    @property
    def preemptions(self) -> int:
        return self._decoding.retractions

    @property
    def block_size(self) -> int:
        return self.limits.page_tokens

    @property
    def used_kv_tokens(self) -> int:
        # Slots given back twice can make more of them than there are.
        return max(0, self.limits.pool_tokens - self.cache.available)

    def kv_tokens_at(self, step: Step | None, now_ms: float) -> int:
        taken = 0
        if self._stretch is not None and step is not None:
            ended = bisect_right(step.ends_ms, now_ms) - self._passes_done
            taken = max(0, ended) * self.batch.growing
        return min(self.limits.pool_tokens, self.used_kv_tokens + taken)

    @property
    def total_kv_tokens(self) -> int:
        return self.limits.pool_tokens

    def record_passes(self, worker_id: int) -> PassLog:
        self.pass_log = log = PassLog(worker_id, 1)  # slots of one token are what is held
        return log

    def receive(self, request: Request) -> None:
        self.queue.append(SglangSequence(request, self.interner))

    def live_requests(self) -> list[Request]:
        sequences = (*self._members.values(), *self._waiting, *self.handoffs.ready)
        return [sequence.request for sequence in sequences]

    def close(self) -> None:
        for sequence in self._members.values():
            if self._in_lockstep and not sequence.is_new:
                sequence.generated = self.batch.generated(sequence)
                self.tokens.leave((sequence,))
        self.tokens.unfinished((*self._members.values(), *self._waiting))

    def stuck_reason(self) -> str | None:
        return dead_end_reason(self.batch, self.queue, self.cache, self.limits)

    # ------------------------------------------------------------ passes

    def start(
        self, now_ms: float, max_passes: int, until_ms: float = math.inf, undisturbed: bool = False
    ) -> Step:
        chunks: list[Chunk] = []
        admitted: Admitted | None = None
        handed_over: list[SglangSequence] = []
        handoffs = self.handoffs
        if handoffs.ready:
            handed_over = handoffs.admit_ready(self.limits.max_sequences, now_ms)
        if self._waiting:
            if self.queue.by_prefix:
                self.queue.sort(self.cache)
            if not handoffs.goes_first:
                admitted = admit(
                    self.queue, self.cache, self.batch, self.ratio, self.limits, now_ms, self._note_admission
                )
                chunks = admitted.chunks
                if admitted.out_of_memory:
                    self.ratio.reset()
        if handoffs.destinations.pending and handoffs.attempt_is_due:
            max_passes = 1  # slots are set aside at the end of this very pass
        if self._members and not chunks and not handed_over and self._in_lockstep:
            ends_ms = self._stretch_ends(now_ms, max_passes, until_ms, admitted)
            if ends_ms:
                return self._start_stretch(now_ms, ends_ms)
        step = self._single_pass(now_ms, chunks, handed_over)
        if (until_ms < math.inf or self._first_tokens_unheard) and max_passes > 1:
            self._run_on(step, max_passes - 1, until_ms)
        return step

    def _single_pass(self, now_ms: float, chunks: list[Chunk], handed_over: list[SglangSequence]) -> Step:
        """Prefill and decode (`spec 05, 8`, steps 5 to 11); those ``handed_over`` run since this pass."""
        step = Step(now_ms, [now_ms + self._prefill_ms(chunks)], True, 0, 0)
        step.admissions = len(chunks) + len(handed_over)
        newcomers = handed_over + self._place(chunks)
        stats = scheduled_stats(chunks, self.batch) if self.records_stats else None
        running, handoffs = len(self._members), self.handoffs
        scheduled = None if self.pass_log is None else scheduled_numbers(chunks, self.batch)
        used_tokens = self.used_kv_tokens
        victims: list[SglangSequence] = []
        if running:
            victims, used_tokens = self._decoding.decode(step, newcomers)
            if step.tokens:
                self._idle_passes = 0
            elif step.admissions or victims or step.end_ms > now_ms:
                self._idle(1)
            else:
                raise self._dead_end()
        if victims:
            self.ratio.reset()
            self.queue.push_front(victims)
            handoffs.generation += 1
        self.ratio.lower(1)
        step.progress = bool(chunks or running)
        if stats is not None:
            stats.first_used_tokens = used_tokens
            stats.add_queue(self.queue.arrivals, self.queue.returned)
            step.stats = stats
        if scheduled is not None:
            step.first_pass = (step.tokens, *scheduled, len(self._waiting), used_tokens)
        return step

    def _idle(self, passes: int) -> None:
        """Count passes in which requests run and none gets a token."""
        self._idle_passes += passes
        if self._idle_passes > MAX_IDLE_PASSES and not self._capped:
            raise self._dead_end()

    def _dead_end(self) -> SimulationError:
        """The reference would repeat such passes for ever."""
        return SimulationError(f"the run reached a dead end: {self.stuck_reason()}")

    def _prefill_ms(self, chunks: list[Chunk]) -> float:
        count = len(chunks)
        if not count:
            return 0.0
        ends = reused = 0
        for chunk in chunks:
            ends += chunk.end
            reused += chunk.reused
        new_tokens = ends // count - reused // count
        return self._timing.prefill_ms(count, new_tokens) if new_tokens > 0 else 0.0

    def _place(self, chunks: list[Chunk]) -> list[SglangSequence]:
        """Let those run that have all their tokens now, and return them; the others wait for more."""
        newcomers = []
        for sequence, _, _, end in chunks:
            if end < sequence.prompt_tokens + sequence.generated:
                memory.store(self.cache, sequence, end // self.limits.page_tokens, self.cache.now())
                self.queue.push_front((sequence,))
            else:
                self.batch.add(sequence)
                newcomers.append(sequence)
        return newcomers

    # ------------------------------------------------------------ stretches

    def _stretch_ends(
        self, now_ms: float, max_passes: int, until_ms: float, admitted: Admitted | None
    ) -> list[float]:
        """Ends of as many passes as admit nobody and retract nobody; empty when not even one does.

        It ends with the pass in which a request ends or a page has to be stored at once, before the one in which
        the head of the queue may find room, and after one with an eviction where the order of the queue depends
        on what is cached.
        """
        batch, cache, limits = self.batch, self.cache, self.limits
        at_most = min(max_passes, self._planned_passes)
        growing = batch.growing
        if until_ms < math.inf:
            at_most = min(max_passes, passes_until(until_ms, batch, self._timing, limits.pool_tokens, now_ms))
        if growing:
            at_most = min(at_most, passes_until_event(batch))
            if admitted is not None and admitted.out_of_memory:
                at_most = 1
            if self.records_stats and batch.is_mixed:  # the variance of the lengths moves
                at_most = 1
            if self.queue.is_sorted:
                at_most = min(at_most, cache.free // growing + 1)
            refused_for = None if admitted is None else admitted.refused_for
            passes = undecided_passes(batch, cache, self.ratio, at_most, refused_for)
            if not passes:
                return []
            ends_ms = ends_of_passes(batch, self._timing, limits.pool_tokens, now_ms, passes)
        else:
            ends_ms = ends_of_idle_passes(batch, self._timing, limits.pool_tokens, now_ms, at_most)
        if ends_ms and ends_ms[-1] > until_ms:
            del ends_ms[bisect_left(ends_ms, until_ms) + 1 :]
        return ends_ms

    def _start_stretch(self, now_ms: float, ends_ms: list[float]) -> Step:
        growing = self.batch.growing
        self._stretch = step = Step(now_ms, ends_ms, True, growing, growing)
        if self.records_stats:
            step.stats = self._stretch_stats(len(ends_ms))
        if self.pass_log is not None:
            step.stretch = self._stretch_numbers()
        if self.cache.copies is not None:
            self._note_next_eviction(step)
        return step

    def _stretch_stats(self, passes: int) -> PassStats:
        stats = stretch_stats(passes, self.batch, self.limits.pool_tokens - self.cache.available)
        stats.add_queue(self.queue.arrivals, self.queue.returned)
        return stats

    def _stretch_numbers(self) -> PassNumbers:
        scheduled = scheduled_numbers([], self.batch)
        used_tokens = self.limits.pool_tokens - self.cache.available
        return (self.batch.growing, *scheduled, len(self._waiting), used_tokens)

    def _run_on(self, step: Step, max_passes: int, until_ms: float) -> None:
        """Add the stretch behind a pass to its step, where nobody has to hear of the end of the pass."""
        end_ms = step.ends_ms[0]
        all_emitted_and_go_on = 0 < step.tokens == self.batch.growing
        if (
            not all_emitted_and_go_on
            or self._waiting
            or not self._in_lockstep
            or not step.start_ms < end_ms < until_ms
            or self.cache.copies is not None
        ):
            return
        ends_ms = self._stretch_ends(end_ms, max_passes, until_ms, None)
        if ends_ms and ends_ms[0] > end_ms:  # passes of no time belong to the instant they run in
            if self.records_stats:
                step.later_stats = self._stretch_stats(len(ends_ms))
            if self.pass_log is not None:
                step.stretch = self._stretch_numbers()
            step.ends_ms += ends_ms
            self._stretch = step
            self._passes_done = 1

    def note_gaps_until(self, now_ms: float) -> None:
        step = self._stretch
        if step is not None and step.tokens:
            self.tokens.group_stretch_until(now_ms, step.ends_ms[self._passes_done :], step.tokens)

    def finish(self, step: Step) -> None:
        if self.pass_log is not None and step.first_pass is not None:
            self.pass_log.add_pass(step.start_ms, step.ends_ms[0], step.first_pass)
        if self._stretch is not None:
            self._stretch = None
            self._finish_stretch(step)
        if self.cache.copies is not None:
            self._visible_events += self.cache.copies.log.take()
            self.kv_events_from_ms = -math.inf if self._visible_events else math.inf

    def _finish_stretch(self, step: Step) -> None:
        begun_ms, ends_ms = step.start_ms, step.ends_ms
        if self._passes_done:
            begun_ms, ends_ms = ends_ms[0], ends_ms[1:]
            self._passes_done = 0
        passes = len(ends_ms)
        if passes and step.stretch is not None and self.pass_log is not None:
            # Every pass takes a slot for each token.
            self.pass_log.add_stretch(begun_ms, ends_ms, step.stretch, [step.tokens] * passes)
        # Plan about as far as stretches go before something cuts them.
        self._planned_passes = max(self._min_planned, 2 * passes)
        if not step.tokens:
            self._idle(passes)
        elif ends_ms:
            self._idle_passes = 0
            self._decoding.emit_stretch(step, ends_ms)
        self.ratio.lower(passes)

    # ------------------------------------------------------------ KV events

    def publish_kv_events(self) -> None:
        self.cache.copies = PageCopies()

    def take_kv_events(self, now_ms: float, starts_included: bool) -> Sequence[KvEvent]:
        copies, stretch = self.cache.copies, self._stretch
        if copies is None:
            return ()
        self.kv_events_from_ms = math.inf
        if stretch is not None:
            # In the middle of a stretch nothing happens to the cache but evictions. Those of the passes that have
            # ended are made now. That changes nothing else: what can be taken is the same, free or not.
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

    # ------------------------------------------------------------ for tests

    def check(self) -> None:
        """Check that the books of the cache agree with themselves, and with what the sequences lock.

        Raises:
            AssertionError: they do not agree.
        """
        sequences = (*self._members.values(), *self._waiting, *self.handoffs.locked())
        self.cache.check([sequence.last_node for sequence in sequences if sequence.last_node is not None])
