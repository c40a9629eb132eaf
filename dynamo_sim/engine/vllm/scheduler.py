"""The vLLM-style scheduler: what one worker does in a pass (`spec 02`)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dynamo_sim.engine.lockstep import Lockstep
from dynamo_sim.engine.step import SignalKind, Step
from dynamo_sim.engine.vllm.emission import emit_bursts, emit_tokens
from dynamo_sim.engine.vllm.pass_plan import PassPlan, Work
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.engine.vllm.stats import add_queue, scheduled_stats, stretch_stats
from dynamo_sim.errors import SimulationError
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.kv.kv_events import KvEvent, KvEventLog
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.metrics.gaps import GapLog
from dynamo_sim.timing.pass_timing import PassTiming
from dynamo_sim.timing.speculative import BurstSampler
from dynamo_sim.workload.request import Request

if TYPE_CHECKING:
    from dynamo_sim.scenario.engine_args import EngineArgs

UNLIMITED = 1 << 62
FUTILE_PREEMPTIONS = 20_000
"""Preemptions without a token in between that no load reaches whose requests can all end."""


class VllmScheduler:
    """Continuous batching with chunked prefill, prefix caching and preemption by recomputation.

    Sequences that decode in step are kept in a `Lockstep` group and scheduled as one; whatever a pass cannot treat
    so (a preemption, a budget smaller than the batch, planned outputs, speculative bursts) *dissolves* the group and is
    done sequence by sequence. Both ways give the same numbers; ``lockstep=False`` forces the second one.

    Requests that preempt themselves or each other for ever are an error, unless the run is ``capped``: then it goes on
    until its time is up, as long as the clock moves.
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
    ) -> None:
        self.block_size = args.block_size
        self.pool = BlockPool(args.num_gpu_blocks, args.block_size, args.enable_prefix_caching)
        self.timing = timing
        self.interner = interner
        self.sampler = sampler
        self.max_sequences = args.max_num_seqs or UNLIMITED
        self.budget_tokens = args.max_num_batched_tokens or UNLIMITED
        self.chunked = args.enable_chunked_prefill
        self.pays_prefill = args.worker_type != "decode"  # spec 04, 7
        self.pays_decode = args.worker_type != "prefill"
        self.oldest_first = args.preemption_mode == "fifo"
        self.waiting: deque[Sequence] = deque()
        self.fresh_tokens = self.fresh_squares = (
            0  # of waiting requests that never ran: prompts, and their squares
        )
        self.running: list[Sequence] = []
        self.group = Lockstep(args.block_size)
        self.gaps = GapLog()
        self.observed = False
        self.capped = capped
        self.preemptions = 0
        self._fruitful_preemptions = 0  # those before the latest token
        self._preempted_ms = 0.0
        self.group_allowed = lockstep and sampler is None
        self.emitted_ms = 0.0  # when the group got its latest token
        self._number = 0  # of the latest pass that was no stretch; several may lie at one time
        self._group_number = 0  # of the one in which the group got a token last
        self._newcomers: list[Sequence] = []  # group members with one token so far
        self._pinned = 0  # running sequences that must be served token by token
        self._admissions = 0
        self._stretch: Step | None = None
        self.kv_events_from_ms = math.inf
        self._horizon = 64  # passes to plan ahead in the next stretch
        # Without an influence of the context the duration is a function of the blocks held: one look-up.
        self._decode_table: dict[int, float] | None = None if timing.context_matters else {}

    # ------------------------------------------------------------ what the fleet sees

    @property
    def request_count(self) -> int:
        return len(self.waiting) + len(self.running)

    @property
    def waiting_count(self) -> int:
        return len(self.waiting)

    @property
    def used_kv_tokens(self) -> int:
        return self.pool.active * self.block_size

    def kv_tokens_at(self, step: Step | None, now_ms: float) -> int:
        held = self.pool.active
        if self._stretch is not None and step is not None:
            begun = min(bisect_right(step.ends_ms, now_ms), len(step.ends_ms) - 1)
            held += self.group.openings_within(begun)
        return held * self.block_size

    @property
    def total_kv_tokens(self) -> int:
        return self.pool.num_blocks * self.block_size

    def receive(self, request: Request) -> None:
        self.waiting.append(self.new_sequence(request, request.output_tokens))
        self.fresh_tokens += request.input_tokens
        self.fresh_squares += request.input_tokens * request.input_tokens

    def start(self, now_ms: float, max_passes: int) -> Step:
        group = self.group
        plan = None
        if self.waiting or len(self.running) != group.count or not 0 < group.count <= self.budget_tokens:
            plan = self._plan_pass(now_ms)
            if not group.count or plan.work or plan.rejected:
                return self._single_pass(plan)
        # Nothing but the group's next tokens, pass after pass, as long as there is room for their blocks.
        return self._plan_stretch(now_ms, max_passes) or self._single_pass(plan or self._plan_pass(now_ms))

    def finish(self, step: Step) -> None:
        if self._stretch is None:
            return
        self._stretch = None
        group = self.group
        earlier = len(step.ends_ms) - 1
        # Plan about as far as stretches go before something cuts them.
        self._horizon = max(8, 2 * earlier + 2)
        if earlier:
            opened = group.openings_within(earlier)
            self.pool.take_fresh(opened)
            group.advance(earlier, opened)
        self.gaps.add_stretch(self.emitted_ms, step.ends_ms, group.count)
        self._emit_group(step.end_ms, step)

    def publish_kv_events(self) -> None:
        if self.pool.caching:
            self.pool.events = KvEventLog()

    def take_kv_events(self, now_ms: float, starts_included: bool) -> Iterable[KvEvent]:
        log, stretch = self.pool.events, self._stretch
        if log is None:
            return ()
        self.kv_events_from_ms = math.inf
        if stretch is not None:
            bisect = bisect_right if starts_included else bisect_left
            self._evict_for(stretch, 1 + bisect(stretch.ends_ms, now_ms))
        return log.take()

    def _evict_for(self, stretch: Step, passes: int) -> None:
        """Make the evictions of the first passes of a stretch ahead of `finish`, for they are to be seen.

        That changes neither how many blocks are available nor how many are held, and `finish` finds free what it takes.
        """
        pool, group, ends = self.pool, self.group, stretch.ends_ms
        if passes < len(ends):
            shortage = group.openings_within(passes) - pool.free
            self.kv_events_from_ms = ends[passes - 1]
        else:
            shortage = group.shortage_at_the_end(len(ends), pool.free)
        if shortage > 0:
            pool.evict(shortage)

    def live_requests(self) -> list[Request]:
        return [sequence.request for sequence in (*self.running, *self.waiting)]

    def close(self) -> None:
        self.dissolve_group(None)
        for sequence in (*self.running, *self.waiting):
            if sequence.generated:
                sequence.request.emitted_tokens = sequence.generated
                sequence.request.last_token_ms = sequence.emitted_ms

    def stuck_reason(self) -> str | None:
        idle = [s for s in self.running if s.max_output_tokens == 0]
        if idle:
            return f"{idle[0].request.name} asks for 0 output tokens and never completes; ask for at least 1"
        if self.running:
            return f"{len(self.running)} running requests make no progress"
        if not self.waiting:
            return None
        head = self.waiting[0]
        if not self.chunked and head.prompt_tokens > self.budget_tokens:
            return (
                f"{head.request.name} has {head.prompt_tokens} prompt tokens, more than "
                f"max_num_batched_tokens={self.budget_tokens} while enable_chunked_prefill is false, and blocks "
                f"{len(self.waiting) - 1} requests behind it; enable chunked prefill or raise max_num_batched_tokens"
            )
        return f"{head.request.name} cannot be admitted"

    # ------------------------------------------------------------ policy (what a variant of the engine changes)

    def new_sequence(self, request: Request, max_output_tokens: int) -> Sequence:
        """The engine's view of an arriving request."""
        names = self.interner.names_of(request) if self.pool.caching else ()
        return Sequence(request, max_output_tokens, names, self.block_size)

    def judge(self, sequence: Sequence) -> int | None:
        """Cached tokens of the head of the queue if it may be admitted now, None if it has to wait (`spec 02, 8`)."""
        blocks = -(-sequence.tokens // self.block_size)
        available = self.pool.available
        cached, held = self.pool.cached_prefix(sequence)
        return None if blocks - held // self.block_size > available else cached

    def never_fits(self, sequence: Sequence) -> bool:
        """Whether a request that never ran has to be rejected."""
        return -(-sequence.tokens // self.block_size) > self.pool.num_blocks

    def preempt(self, plan: PassPlan, requester: Sequence | None) -> Sequence | None:
        """Take one sequence out of the batch to make room; None when the policy forbids it (`spec 02, 7`).

        Raises:
            SimulationError: ``requester`` would be its own victim while it has the worker to itself. It
                would come back, and preempt itself again, without end (`spec 02, 12`).
        """
        self.dissolve_group(plan)
        victim = self.running.pop(0 if self.oldest_first else -1)
        if victim is requester and not self.running and not self.capped:
            self._refuse_endless(victim)
        self._pinned -= victim.pinned
        self._count_preemption(victim, plan.now_ms)
        victim.running = False
        victim.preempted = True
        self.pool.release(victim, -(-victim.allocated // self.block_size))
        victim.computed = victim.allocated = 0
        self.waiting.appendleft(victim)
        return victim

    def _count_preemption(self, victim: Sequence, now_ms: float) -> None:
        self.preemptions += 1
        if self.capped and now_ms != self._preempted_ms:
            self._fruitful_preemptions = self.preemptions
            self._preempted_ms = now_ms
        if self.preemptions - self._fruitful_preemptions <= FUTILE_PREEMPTIONS:
            return
        if not self.request_count:
            self._refuse_endless(victim)
        raise SimulationError(
            f"at {now_ms:g} ms {self.request_count + 1} requests of a worker preempt each other without end: "
            f"num_gpu_blocks={self.pool.num_blocks} of {self.block_size} tokens leave none of them room for its next "
            "token; raise num_gpu_blocks or lower max_num_seqs"
        )

    def _refuse_endless(self, sequence: Sequence) -> None:
        request = sequence.request
        needed = -(-(sequence.prompt_tokens + sequence.max_output_tokens) // self.block_size)
        raise SimulationError(
            f"{request.name} can never finish: its {sequence.prompt_tokens} prompt and "
            f"{sequence.max_output_tokens} output tokens need {needed} KV blocks of {self.block_size} tokens, the "
            f"worker has num_gpu_blocks={self.pool.num_blocks}; raise num_gpu_blocks to at least {needed} or shorten it"
        )

    # ------------------------------------------------------------ scheduling

    def _plan_pass(self, now_ms: float) -> PassPlan:
        plan = PassPlan(now_ms, self.budget_tokens)
        self._schedule_running(plan)
        self._admit(plan)
        return plan

    def _schedule_running(self, plan: PassPlan) -> None:
        """Give the running sequences their tokens of this pass, in order (`spec 02, 5.2`)."""
        running, group = self.running, self.group
        index = 0
        if group.count > plan.budget:
            self.dissolve_group(None)
        elif group.count:  # the group is always the beginning of the running list
            index = plan.group_count = group.count
            plan.budget -= index
        while index < len(running) and plan.budget > 0:
            scheduled = self._schedule(plan, running[index], None)
            if scheduled is None:
                return
            if scheduled:
                index += 1

    def _schedule(self, plan: PassPlan, sequence: Sequence, cached: int | None) -> bool | None:
        """Schedule one sequence (`spec 02, 6`): True, None when it is blocked, False when it was preempted itself."""
        reused = 0
        if sequence.computed == 0:
            reused = self.pool.cached_prefix(sequence)[0] if cached is None else cached
        prompt = sequence.prompt_tokens
        length = prompt + sequence.generated
        before = sequence.computed + reused
        known = max(0, length - before)
        prompt_before = min(before, prompt)
        prompt_left = prompt - prompt_before
        if not self.chunked and prompt_left and prompt_left > plan.budget:
            return None
        want = min(known, plan.budget)
        if want == 0 and known > 0:
            return None
        target = before + want
        if target > sequence.allocated:
            size = self.block_size
            first = -(-sequence.allocated // size)
            last = -(-target // size)
            while first < last and not self.pool.take(sequence, first, last):
                victim = self.preempt(plan, sequence)
                if victim is None:
                    return None
                plan.undo(victim)
                if victim is sequence:
                    return False
            sequence.allocated = target
        sequence.computed = target
        prompt_part = min(target, prompt) - prompt_before
        plan.add(sequence, Work(target - before, prompt_part, prompt_before, prompt, length))
        return True

    def _admit(self, plan: PassPlan) -> None:
        """Admit from the head of the queue, never past it (`spec 02, 5.3`)."""
        waiting, running = self.waiting, self.running
        while waiting and len(running) < self.max_sequences and not plan.preempted:
            head = waiting[0]
            if not head.preempted and self.never_fits(head):
                self._leave_queue(head)
                plan.rejected.append(head)
                continue
            # With an empty prompt the room is not looked at, also when there are generated tokens to compute again.
            cached = self.judge(head) if head.prompt_tokens else 0
            if cached is None:
                return
            before = plan.budget
            if not self._schedule(plan, head, cached):
                return
            self._leave_queue(head)
            running.append(head)
            head.running = True
            head.preempted = False
            self._admissions += 1
            head.admission = self._admissions
            if head.pinned:
                self._pinned += 1
                self.dissolve_group(plan)
            plan.admissions += 1
            head.request.note_admission(plan.now_ms, cached)
            if plan.budget == before and plan.budget == 0:
                return

    def _leave_queue(self, sequence: Sequence) -> None:
        self.waiting.remove(sequence)  # its head, or behind those that had to make room for it
        if not sequence.preempted:
            self.fresh_tokens -= sequence.prompt_tokens
            self.fresh_squares -= sequence.prompt_tokens * sequence.prompt_tokens

    # ------------------------------------------------------------ one pass, one stretch

    def _single_pass(self, plan: PassPlan) -> Step:
        self._number += 1
        prefill_ms = 0.0
        if plan.prefill_count and self.pays_prefill:
            count = plan.prefill_count
            new = max(0, plan.prefill_ends // count - plan.prefill_starts // count)
            prefill_ms = self.timing.prefill_ms(count, new)
        decode_start = plan.now_ms + prefill_ms
        step = Step(plan.now_ms, [decode_start], True, 0, 0)
        stats = scheduled_stats(self, plan) if self.observed else None
        if self.sampler is not None:
            emit_bursts(self, plan, step, decode_start)
        else:
            emit_tokens(self, plan, step, decode_start)
        for sequence in plan.rejected:
            step.signals.append((sequence.request, SignalKind.REJECTED))
        if step.tokens:
            self._fruitful_preemptions = self.preemptions
        step.admissions = plan.admissions
        step.progress = bool(plan.admissions or step.tokens or step.signals or plan.did_something)
        self._regroup()
        if stats is not None:
            add_queue(stats, self)
            step.stats = stats
        if self.pool.events is not None:
            self.kv_events_from_ms = min(self.kv_events_from_ms, plan.now_ms)
        return step

    def _plan_stretch(self, now_ms: float, max_passes: int) -> Step | None:
        """As many passes as change nothing but lengths and blocks; None when not even one does."""
        group, pool, size = self.group, self.pool, self.block_size
        ending, openings = group.ending, group.openings
        count = group.count
        context = group.tokens // count
        active, available = pool.active, pool.available
        matters = self.timing.context_matters
        number = group.passes
        last = number + min(max_passes, self._horizon)
        residue = (number + 1) % size
        following = openings[residue]
        if following > available:
            return None
        duration = self.decode_ms(active, count, context)
        if now_ms + duration == now_ms:
            last = number + 1  # passes of no time belong to the instant they run in, each in its place
        now = now_ms
        ends: list[float] = []
        while True:
            number += 1
            now += duration
            ends.append(now)
            opens = following
            residue += 1
            if residue == size:
                residue = 0
            following = openings[residue]
            if opens:
                active += opens
                available -= opens
            if number in ending or following > available or number == last:
                break
            if opens or matters:
                context += 1
                duration = self.decode_ms(active, count, context)
                if duration == 0.0:
                    break
        if self._newcomers:
            for sequence in self._newcomers:
                sequence.request.second_token_ms = ends[0]
            self._newcomers.clear()
        step = Step(now_ms, ends, True, count, count)
        if self.observed:
            step.stats = stretch_stats(self, step)
        self._stretch = step
        if pool.events is not None and group.openings_within(len(ends)) > pool.free:
            self.kv_events_from_ms = min(self.kv_events_from_ms, now_ms)
        return step

    def decode_ms(self, active: int, batch: int, context: int) -> float:
        """Duration of a decode step with ``active`` blocks held."""
        if not self.pays_decode:
            return 0.0
        if self._decode_table is None:
            return self.timing.decode_ms(active * self.block_size, batch, context)
        duration = self._decode_table.get(active)
        if duration is None:
            kv_tokens = active * self.block_size
            duration = self._decode_table[active] = self.timing.decode_ms(kv_tokens, batch, context)
        return duration

    # ------------------------------------------------------------ the group

    def advance_group(self, end_ms: float, step: Step) -> None:
        """One emission of the group (`spec 02, 10.3`) as part of a pass that did more."""
        for sequence in self._newcomers:
            sequence.request.second_token_ms = end_ms
        self._newcomers.clear()
        self.gaps.add(end_ms - self.emitted_ms, self.group.count)
        self._group_number = self._number
        self._emit_group(end_ms, step)

    def _emit_group(self, end_ms: float, step: Step) -> None:
        """Open blocks and let those go that have their last token; room must have been checked."""
        group, pool = self.group, self.pool
        openers = group.opening[(group.passes + 1) % self.block_size]
        opened = len(openers)
        group.advance(1, opened)
        self.emitted_ms = end_ms
        enders = group.ending.pop(group.passes, None)
        if enders is None:
            pool.take_fresh(opened)
        elif opened <= pool.free:
            pool.free -= opened
            for sequence in enders:
                self._end_member(sequence, end_ms, step)
        else:  # in running order: the room of one that ends serves those behind it
            turns = tuple(openers)
            taken = 0
            for sequence in enders:
                before = taken
                while taken < opened and turns[taken].admission <= sequence.admission:
                    taken += 1
                pool.take_fresh(taken - before)
                self._end_member(sequence, end_ms, step)
            pool.take_fresh(opened - taken)

    def _end_member(self, sequence: Sequence, end_ms: float, step: Step) -> None:
        self.group.end(sequence)
        sequence.generated = sequence.max_output_tokens
        full = (sequence.tokens - 1) // self.block_size
        if full > sequence.full_blocks:
            sequence.full_blocks = full
        self.end(sequence, end_ms, step)

    def dissolve_group(self, plan: PassPlan | None) -> None:
        """Go on sequence by sequence; members that ``plan`` has scheduled as a group get their own work in it."""
        group = self.group
        if not group.count:
            return
        members = self.running[: group.count]
        group.dissolve()
        self._newcomers.clear()
        for sequence in members:
            sequence.emitted_ms = self.emitted_ms
            sequence.emitted_number = self._group_number
        if plan is not None and plan.group_count:
            for sequence in members:
                sequence.computed = sequence.tokens
                plan.work[sequence] = Work(
                    1, 0, sequence.prompt_tokens, sequence.prompt_tokens, sequence.tokens
                )
            plan.group_count = 0

    def _regroup(self) -> None:
        """Let those join that follow the group in the running list and got a token in this pass."""
        if not self.group_allowed or self._pinned:
            return
        group = self.group
        running = self.running
        for index in range(group.count, len(running)):
            sequence = running[index]
            if (
                not sequence.generated
                or sequence.emitted_number != self._number
                or sequence.computed != sequence.tokens - 1
            ):
                return
            group.add(sequence)
            self.emitted_ms = sequence.emitted_ms
            self._group_number = self._number
            if sequence.generated == 1:
                self._newcomers.append(sequence)

    # ------------------------------------------------------------ notes

    def note_token(self, sequence: Sequence, end_ms: float) -> None:
        """Note the token just appended to a sequence outside the group."""
        if sequence.generated == 1:
            sequence.request.first_token_ms = end_ms
        else:
            if sequence.generated == 2:
                sequence.request.second_token_ms = end_ms
            self.gaps.add(end_ms - sequence.emitted_ms, 1)
        sequence.emitted_ms = end_ms
        sequence.emitted_number = self._number

    def end(self, sequence: Sequence, end_ms: float, step: Step) -> None:
        """A sequence has its last token: it gives back its blocks and leaves at the end of the pass."""
        self.pool.release(sequence, -(-sequence.tokens // self.block_size))
        self.running.remove(sequence)
        sequence.running = False
        self._pinned -= sequence.pinned
        request = sequence.request
        request.last_token_ms = end_ms
        request.emitted_tokens = sequence.generated
        step.signals.append((request, SignalKind.COMPLETED))
