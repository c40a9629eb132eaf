"""The scheduling half of a vLLM-style pass: who gets how many tokens, and blocks for them (`spec 02, 5 and 6`)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from dynamo_sim.engine.vllm.admission import AdmissionPolicy
from dynamo_sim.engine.vllm.batch import RunningBatch
from dynamo_sim.engine.vllm.handoff import VllmHandoffs
from dynamo_sim.engine.vllm.offload import VllmOffload
from dynamo_sim.engine.vllm.pass_plan import PassPlan
from dynamo_sim.engine.vllm.preemption import Preemption
from dynamo_sim.engine.vllm.queue import WaitingQueue
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.kv.allocation import NO_ROOM, TAKEN, Allocation
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.workload.request import Request


class Outcome(Enum):
    """What came of scheduling one sequence."""

    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    PREEMPTED = "preempted"


SCHEDULED, BLOCKED, PREEMPTED = Outcome.SCHEDULED, Outcome.BLOCKED, Outcome.PREEMPTED


class PassScheduling:
    """Running sequences first, then the queue from its head on.

    Args:
        batch, queue, pool: what runs, what waits, and the blocks of both.
        policy: says who may be admitted.
        preemption: makes room where a running sequence finds none.
        handoffs: destinations of prompts that are computed elsewhere.
        max_tokens: token budget of a pass.
        max_sequences: most running sequences.
        chunked_prefill: whether a prompt may be computed in several passes.
        note_admission: writes an admission on its request: time in ms, and reused tokens.
        offload: the lower cache tiers, or None.
    """

    def __init__(
        self,
        batch: RunningBatch,
        queue: WaitingQueue,
        pool: BlockPool,
        policy: AdmissionPolicy,
        preemption: Preemption,
        handoffs: VllmHandoffs,
        max_tokens: int,
        max_sequences: int,
        chunked_prefill: bool,
        note_admission: Callable[[Request, float, int], None],
        offload: VllmOffload | None = None,
    ) -> None:
        self.max_tokens = max_tokens
        self.chunked_prefill = chunked_prefill
        self._batch = batch
        self._queue = queue
        self._pool = pool
        self._policy = policy
        self._preemption = preemption
        self._destinations = handoffs.destinations
        self._note_admission = note_admission
        self._offload = offload
        self._max_sequences = max_sequences

    def plan(self, now_ms: float) -> PassPlan:
        """Schedule the pass that starts at ``now_ms``."""
        plan = PassPlan(now_ms, self.max_tokens)
        group = self._batch.group
        if group.count > plan.budget:
            self._batch.dissolve(None)
        elif group.count:
            plan.group_count = group.count
            plan.budget -= group.count
        if plan.group_count < len(self._batch.running):
            self._schedule_running(plan)
        if self._queue.waiting:
            self._admit(plan)
        return plan

    def _schedule_running(self, plan: PassPlan) -> None:
        """Give the running sequences behind the group their tokens of this pass, in order (`spec 02, 5.2`)."""
        running = self._batch.running
        index = plan.group_count
        while index < len(running) and plan.budget > 0:
            outcome = self._schedule(plan, running[index], None)
            if outcome is BLOCKED:
                return
            # The place of one that was preempted itself holds the next one. If an earlier one was the victim, the
            # next one slipped one place forward and is passed over; so does the reference.
            if outcome is SCHEDULED:
                index += 1

    def _admit(self, plan: PassPlan) -> None:
        """Admit from the head of the queue, never past it (`spec 02, 5.3`).

        While a destination of the worker waits for room, those with handed-over prompts are admitted and no others
        (`spec 07, 7`).
        """
        queue, batch, policy = self._queue, self._batch, self._policy
        waiting = queue.waiting
        while waiting and len(batch.running) < self._max_sequences and not plan.preempted:
            head = waiting[0]
            if self._destinations.pending:
                handed_over = next((sequence for sequence in waiting if sequence.computed), None)
                if handed_over is None:
                    return
                head = handed_over
            if head.lease is not None and head.is_blocked:
                return
            # An empty prompt is admitted without a check, also when there are generated tokens to compute again. So is
            # one that came with its blocks.
            cached = policy.can_admit(head) if head.prompt_tokens and not head.computed else 0
            if cached is None:
                if head.preempted or not policy.exceeds_pool(head):
                    return
                queue.remove(head)
                plan.rejected.append(head)
                continue
            if self._offload is not None and not head.preempted and not head.computed:
                answer = self._offload.swap_in(head, cached)
                if answer is TAKEN:
                    queue.remove(head)
                    continue
                if answer is not NO_ROOM:
                    head.lease = answer.lease
                    return
            before = plan.budget
            if self._schedule(plan, head, cached) is not SCHEDULED:
                return
            queue.remove(head)
            batch.admit(head, plan)
            plan.admissions += 1
            self._note_admission(head.request, plan.now_ms, cached)
            if plan.budget == before and plan.budget == 0:
                return

    def _schedule(self, plan: PassPlan, sequence: Sequence, cached: int | None) -> Outcome:
        """Schedule one sequence; ``cached`` tokens of one from the queue need no computing (`spec 02, 6`)."""
        if sequence.lease is not None and sequence.is_blocked:
            return BLOCKED
        prompt = sequence.prompt_tokens
        size = self._pool.block_size
        reused = 0
        if sequence.computed == 0:
            reused = (
                min(self._pool.cached_prefix(sequence.table)[0] * size, prompt) if cached is None else cached
            )
        length = prompt + sequence.generated
        before = sequence.computed + reused
        prompt_before = before if before < prompt else prompt
        if prompt - prompt_before > plan.budget and not self.chunked_prefill:
            return BLOCKED
        target = length if length > before else before  # all known tokens, unless the budget is smaller
        if target - before > plan.budget:
            if plan.budget == 0:
                return BLOCKED
            target = before + plan.budget
        blocks = -(-target // size)
        if blocks > sequence.table.held_blocks:
            answer = self._pool.take(sequence.table, blocks)
            if answer is not TAKEN:
                outcome = self._take(answer, plan, sequence, blocks)
                if outcome is not SCHEDULED:
                    return outcome
        sequence.computed = target
        prompt_part = (target if target < prompt else prompt) - prompt_before
        plan.add(sequence, (target - before, prompt_part, prompt_before, prompt, length))
        return SCHEDULED

    def _take(self, answer: Allocation, plan: PassPlan, sequence: Sequence, blocks: int) -> Outcome:
        """Preempt others until a sequence that did not get its first ``blocks`` blocks has them (`spec 02, 6.5`)."""
        while answer is NO_ROOM:
            victim = self._preemption.preempt(plan, sequence)
            if victim is None:
                return BLOCKED
            plan.undo(victim)
            if victim is sequence:
                return PREEMPTED
            answer = self._pool.take(sequence.table, blocks)
        if answer is TAKEN:
            return SCHEDULED
        sequence.lease = answer.lease
        return BLOCKED
