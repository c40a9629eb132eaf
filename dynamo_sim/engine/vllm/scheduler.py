"""The vLLM-style scheduler: what one worker does in a pass (`spec 02`)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dynamo_sim.engine.pass_log import PassLog, PassNumbers
from dynamo_sim.engine.roles import Stage, timing_of_role
from dynamo_sim.engine.step import REJECTED, Step
from dynamo_sim.engine.token_log import HiddenTokenLog, TokenLog
from dynamo_sim.engine.vllm.admission import AdmissionPolicy, KnownTokensFit
from dynamo_sim.engine.vllm.batch import RunningBatch
from dynamo_sim.engine.vllm.bursts import BurstEmission
from dynamo_sim.engine.vllm.dead_end import stuck_reason
from dynamo_sim.engine.vllm.emission import Emission
from dynamo_sim.engine.vllm.handoff import VllmHandoffs
from dynamo_sim.engine.vllm.offload import build_offload, build_pool
from dynamo_sim.engine.vllm.pass_plan import PassPlan
from dynamo_sim.engine.vllm.preemption import NoPreemption, Preemption, Recomputation
from dynamo_sim.engine.vllm.queue import WaitingQueue
from dynamo_sim.engine.vllm.scheduling import PassScheduling
from dynamo_sim.engine.vllm.sequence import Sequence, sequence_of
from dynamo_sim.engine.vllm.stats import scheduled_numbers, scheduled_stats, stretch_stats
from dynamo_sim.engine.vllm.stretch import stretch_ends
from dynamo_sim.engine.vllm.trtllm import WholeAnswerFits
from dynamo_sim.kv.block_table import BlockTable
from dynamo_sim.kv.kv_events import KvEvent, KvEventLog
from dynamo_sim.kv.offload.worker_tiers import WorkerTiers
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.timing.pass_timing import PassTiming
from dynamo_sim.timing.speculative import BurstSampler
from dynamo_sim.workload.request import Request

if TYPE_CHECKING:
    from dynamo_sim.scenario.engine_args import EngineArgs

UNLIMITED = 1 << 62

MIN_PLANNED_PASSES = 8
"""A stretch is planned at least that far; what was planned too far is cut off again."""

MIN_PLANNED_DECODES = 32
"""The same on a decode worker, where short stretches (a transfer long) come between long ones."""


class VllmScheduler:
    """Continuous batching with chunked prefill, prefix caching and preemption by recomputation; or TRT-LLM's variant.

    `start` decides all of a pass. When it does nothing but give a lockstep group its next tokens, it plans a stretch of
    such passes, which `finish` carries out.

    Args:
        args: the engine arguments.
        timing: durations of passes.
        interner: names the blocks of prompts.
        sampler: draws bursts of speculative decoding; None without it.
        lockstep: whether sequences may be handled as a group; False forces them one by one.
        capped: whether the run ends at a time of its own, so that requests without an end are no error.
        stage: what the worker does.
        tiers: the cache tiers below its GPU; None where there are none.
    """

    retries_matter = False

    def __init__(
        self,
        args: EngineArgs,
        timing: PassTiming,
        interner: PrefixInterner,
        sampler: BurstSampler | None = None,
        lockstep: bool = True,
        capped: bool = False,
        stage: Stage = Stage.AGGREGATED,
        tiers: WorkerTiers[Sequence] | None = None,
    ) -> None:
        self.pool = pool = build_pool(args, interner, tiers)
        decodes_only = stage is Stage.DECODE
        self.tokens = HiddenTokenLog() if stage is Stage.PREFILL else TokenLog()
        self.queue = queue = WaitingQueue(handed_over=decodes_only)
        self.batch = batch = RunningBatch(args.block_size, self.tokens, lockstep and sampler is None)
        max_sequences = args.max_num_seqs or UNLIMITED
        self.handoffs = handoffs = VllmHandoffs(batch, queue, pool, interner, max_sequences, args.engine_type)
        self.lower_tiers = offload = build_offload(pool, queue, handoffs)
        policy: AdmissionPolicy
        preemption: Preemption
        if args.engine_type == "trtllm":
            policy, preemption = WholeAnswerFits(pool, batch), NoPreemption()
        else:
            policy = KnownTokensFit(pool)
            preemption = Recomputation(batch, queue, pool, handoffs, args.preemption_mode == "fifo", capped)
        self._policy = policy
        self._preemption = preemption
        self._timing = timing = timing_of_role(timing, args.worker_type)
        self._scheduling = PassScheduling(
            batch,
            queue,
            pool,
            policy,
            preemption,
            handoffs,
            max_tokens=args.max_num_batched_tokens or UNLIMITED,
            max_sequences=max_sequences,
            chunked_prefill=args.enable_chunked_prefill,
            note_admission=Request.note_decode_admission if decodes_only else Request.note_admission,
            offload=offload,
        )
        self._emission = (
            Emission(batch, pool, preemption, timing, self.tokens, handoffs)
            if sampler is None
            else BurstEmission(batch, pool, preemption, timing, self.tokens, handoffs, sampler)
        )
        self._interner = interner
        self._waiting, self._running = queue.waiting, batch.running
        self.gaps = self.tokens.gaps
        self.records_stats = False
        self.pass_log: PassLog | None = None
        self.kv_events_from_ms = math.inf
        self._stretch: Step | None = None  # the step in progress, when `finish` has to carry it out
        self._passes_done = 0  # of that step: 1 if it begins with a pass that was carried out at its start
        self._planned_passes = 64  # how far to plan the next stretch
        self._min_planned = MIN_PLANNED_DECODES if decodes_only else MIN_PLANNED_PASSES
        self._first_tokens_unheard = decodes_only  # by whoever routes to this worker (`spec 07, 6.1`)

    # ------------------------------------------------------------ what the fleet sees

    @property
    def request_count(self) -> int:
        parked = 0 if self.lower_tiers is None else len(self.lower_tiers.parked())
        return len(self._waiting) + len(self._running) + parked

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    @property
    def waiting_tokens(self) -> int:
        return self.queue.arrivals.total + self.queue.returned.total

    @property
    def preemptions(self) -> int:
        return self._preemption.count

    @property
    def block_size(self) -> int:
        return self.pool.block_size

    @property
    def used_kv_tokens(self) -> int:
        return self.pool.active * self.pool.block_size

    def kv_tokens_at(self, step: Step | None, now_ms: float) -> int:
        held = self.pool.active
        if self._stretch is not None and step is not None:
            ended = min(bisect_right(step.ends_ms, now_ms), len(step.ends_ms) - 1)
            held += self.batch.group.openings_within(max(0, ended - self._passes_done))
        return held * self.pool.block_size

    @property
    def total_kv_tokens(self) -> int:
        return self.pool.num_blocks * self.pool.block_size

    def record_passes(self, worker_id: int) -> PassLog:
        self.pass_log = log = PassLog(worker_id, self.pool.block_size)
        return log

    def receive(self, request: Request) -> None:
        self.queue.append(
            sequence_of(request, self._policy.output_tokens(request), self.pool, self._interner)
        )

    def live_requests(self) -> list[Request]:
        parked = () if self.lower_tiers is None else self.lower_tiers.parked()
        return [sequence.request for sequence in (*self._running, *self._waiting, *parked)]

    def close(self) -> None:
        self.batch.dissolve(None)
        self.tokens.unfinished((*self._running, *self._waiting))

    def stuck_reason(self) -> str | None:
        scheduling = self._scheduling
        return stuck_reason(self._running, self.queue, scheduling.max_tokens, scheduling.chunked_prefill)

    # ------------------------------------------------------------ passes

    def start(
        self, now_ms: float, max_passes: int, until_ms: float = math.inf, undisturbed: bool = False
    ) -> Step:
        group = self.batch.group
        tiers = self.lower_tiers
        if tiers is not None and tiers.poll(now_ms) and self.pool.events is not None:
            self.kv_events_from_ms = min(self.kv_events_from_ms, now_ms)
        if self.handoffs.destinations.pending and self.handoffs.attempt_is_due:
            max_passes = 1  # room is set aside at the end of this very pass
        plan = None
        count = group.count
        if self._waiting or len(self._running) != count or not 0 < count <= self._scheduling.max_tokens:
            plan = self._scheduling.plan(now_ms)
        if tiers is not None and tiers.deadline_ms < math.inf:
            # A poll at every start of a pass moves what is in progress: no stretches.
            return self._single_pass(plan or self._scheduling.plan(now_ms))
        if plan is not None and (not count or plan.work or plan.rejected):
            step = self._single_pass(plan)
            if (until_ms < math.inf or self._first_tokens_unheard) and max_passes > 1 and not plan.rejected:
                self._run_on(step, max_passes - 1, until_ms, undisturbed)
            return step
        # Nothing but the next tokens of the group, pass after pass, as long as there is room for their blocks.
        stretch = self._start_stretch(now_ms, max_passes, until_ms)
        return stretch or self._single_pass(plan or self._scheduling.plan(now_ms))

    def _single_pass(self, plan: PassPlan) -> Step:
        self.batch.pass_number += 1
        decode_start_ms = plan.now_ms
        if plan.prefill_count:
            decode_start_ms += self._timing.prefill_ms(plan.prefill_count, plan.prefill_new_tokens())
        step = Step(plan.now_ms, [decode_start_ms], True, 0, 0)
        stats = scheduled_stats(plan, self.batch.group, self.pool) if self.records_stats else None
        if self.pass_log is not None:
            scheduled, used_blocks = scheduled_numbers(plan, self.batch.group), self.pool.active
        self._emission.emit(plan, step, decode_start_ms)
        for sequence in plan.rejected:
            step.signals.append((sequence.request, REJECTED))
        if step.tokens and self._preemption.count:
            self._preemption.token_emitted()
        step.admissions = plan.admissions
        step.progress = bool(plan.admissions or step.tokens or step.signals or plan.did_something)
        self.batch.regroup()
        if self.lower_tiers is not None:
            self.lower_tiers.stall(step)
        if stats is not None:
            stats.add_queue(self.queue.arrivals, self.queue.returned)
            step.stats = stats
        if self.pass_log is not None:
            step.first_pass = (step.tokens, *scheduled, len(self._waiting), used_blocks)
        if self.pool.events is not None:
            self.kv_events_from_ms = min(self.kv_events_from_ms, plan.now_ms)
        return step

    def _start_stretch(self, now_ms: float, max_passes: int, until_ms: float) -> Step | None:
        group, pool = self.batch.group, self.pool
        if until_ms == math.inf:
            max_passes = min(max_passes, self._planned_passes)
        ends_ms = stretch_ends(group, pool, self._timing, now_ms, max_passes, until_ms)
        if not ends_ms:
            return None
        self._stretch = step = Step(now_ms, ends_ms, True, group.count, group.count)
        if self.records_stats:
            step.stats = stretch_stats(len(ends_ms), group, pool)
            step.stats.add_queue(self.queue.arrivals, self.queue.returned)
        if self.pass_log is not None:
            step.stretch = self._stretch_numbers()
        if pool.events is not None:
            self._note_next_eviction(step)
        return step

    def _run_on(self, step: Step, max_passes: int, until_ms: float, undisturbed: bool) -> None:
        """Add the stretch behind a pass to its step, where nobody has to hear of the end of the pass.

        An ``undisturbed`` worker goes on with stretch after stretch.
        """
        group, end_ms = self.batch.group, step.ends_ms[0]
        all_emitted_and_go_on = step.tokens == group.count == len(self._running)
        if (
            not all_emitted_and_go_on
            or self._waiting
            or group.count > self._scheduling.max_tokens
            or not step.start_ms < end_ms < until_ms
            or self.pool.events is not None
        ):
            return
        if undisturbed:
            self._run_through(step, max_passes, until_ms)
            return
        if until_ms == math.inf:
            max_passes = min(max_passes, self._planned_passes)
        ends_ms = stretch_ends(group, self.pool, self._timing, end_ms, max_passes, until_ms)
        if ends_ms and ends_ms[0] > end_ms:  # passes of no time belong to the instant they run in
            if self.records_stats:
                step.later_stats = stretch_stats(len(ends_ms), group, self.pool)
                step.later_stats.add_queue(self.queue.arrivals, self.queue.returned)
            if self.pass_log is not None:
                step.stretch = self._stretch_numbers()
            step.ends_ms += ends_ms
            self._stretch = step
            self._passes_done = 1

    def _run_through(self, step: Step, max_passes: int, until_ms: float) -> None:
        """Carry out the stretches behind a pass, across the ends of requests, up to ``until_ms``."""
        group, log, end_ms = self.batch.group, self.pass_log, step.ends_ms[0]
        if log is not None and step.first_pass is not None:
            log.add_pass(step.start_ms, end_ms, step.first_pass)
            step.first_pass = None
        while group.count and end_ms < until_ms:
            ends_ms = stretch_ends(group, self.pool, self._timing, end_ms, max_passes, until_ms)
            if not ends_ms or ends_ms[0] == end_ms:  # passes of no time belong to the instant they run in
                break
            self._carry_out(step, end_ms, ends_ms, None if log is None else self._stretch_numbers())
            end_ms = ends_ms[-1]
            step.ends_ms += ends_ms

    def note_gaps_until(self, now_ms: float) -> None:
        step = self._stretch
        if step is not None:
            self.tokens.group_stretch_until(now_ms, step.ends_ms[self._passes_done :], step.tokens)

    def finish(self, step: Step) -> None:
        begun_ms, ends_ms = step.start_ms, step.ends_ms
        if step.first_pass is not None and self.pass_log is not None:
            self.pass_log.add_pass(begun_ms, ends_ms[0], step.first_pass)
        if self._stretch is None:
            return
        self._stretch = None
        if self._passes_done:
            self._passes_done = 0
            begun_ms, ends_ms = ends_ms[0], ends_ms[1:]
            if not ends_ms:
                return
        # Plan about as far as stretches go before something cuts them.
        self._planned_passes = max(self._min_planned, 2 * len(ends_ms))
        self._carry_out(step, begun_ms, ends_ms, step.stretch)

    def _carry_out(
        self, step: Step, begun_ms: float, ends_ms: list[float], numbers: PassNumbers | None
    ) -> None:
        """Give the group its tokens of a stretch, which is recorded if there are ``numbers`` for it."""
        group = self.batch.group
        opened = group.openings_of(len(ends_ms))
        if numbers is not None and self.pass_log is not None:
            self.pass_log.add_stretch(begun_ms, ends_ms, numbers, opened)
        self.tokens.group_stretch(ends_ms, group.count)
        self._emission.emit_group(step, len(ends_ms), sum(opened), ends_ms[-1])

    def _stretch_numbers(self) -> PassNumbers:
        """What a `PassLog` notes of a stretch that begins now."""
        group = self.batch.group
        return (group.count, 0, 0, 0, group.count, group.tokens, len(self._waiting), self.pool.active)

    # ------------------------------------------------------------ KV events

    def publish_kv_events(self) -> None:
        if self.pool.caching:
            self.pool.events = KvEventLog()

    def take_kv_events(self, now_ms: float, starts_included: bool) -> Iterable[KvEvent]:
        log, stretch = self.pool.events, self._stretch
        if log is None:
            return ()
        self.kv_events_from_ms = math.inf
        if stretch is not None:
            # The evictions of passes that have begun are made now, ahead of `finish`. That changes neither how many
            # blocks are available nor how many are held, and `finish` finds free what it opens.
            bisect = bisect_right if starts_included else bisect_left
            begun = 1 + bisect(stretch.ends_ms, now_ms)
            if begun < len(stretch.ends_ms):
                missing = self.batch.group.openings_within(begun) - self.pool.free
            else:
                missing = self._emission.missing_blocks(len(stretch.ends_ms))
            if missing > 0:
                self.pool.evict(missing)
            if begun < len(stretch.ends_ms):
                self._note_next_eviction(stretch)
        return log.take()

    def _note_next_eviction(self, stretch: Step) -> None:
        """Find the start of the first pass of a stretch that may have to evict."""
        ends_ms = stretch.ends_ms
        passes = range(1, len(ends_ms) + 1)
        served = bisect_right(passes, self.pool.free, key=self.batch.group.openings_within)
        if served < len(ends_ms):
            start_ms = ends_ms[served - 1] if served else stretch.start_ms
            self.kv_events_from_ms = min(self.kv_events_from_ms, start_ms)

    # ------------------------------------------------------------ for tests

    def check(self) -> None:
        """Check that the books of the pool agree with the blocks of all sequences, between two steps.

        Raises:
            AssertionError: they do not agree.
        """
        group, size = self.batch.group, self.pool.block_size
        tables = [sequence.table for sequence in (*self._running[group.count :], *self._waiting)]
        for sequence in self._running[: group.count]:
            full = (group.length(sequence) - 1) // size
            table = BlockTable(sequence.table.names, max(full, sequence.table.full_blocks))
            table.held_blocks = full + 1
            tables.append(table)
        handoffs = self.handoffs
        elsewhere = (*handoffs.kept.values(), *handoffs.destinations.reserved.values())
        self.pool.check(
            [*tables, *(sequence.table for sequence in elsewhere)], unsettled=handoffs.unfilled_blocks()
        )
        assert group.blocks == sum(table.held_blocks for table in tables[len(tables) - group.count :])
