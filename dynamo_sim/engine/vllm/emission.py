"""The token half of a vLLM-style pass (`spec 02, 10`)."""

from __future__ import annotations

from dynamo_sim.engine.step import COMPLETED, FIRST_TOKEN, Step
from dynamo_sim.engine.token_log import TokenLog
from dynamo_sim.engine.vllm.batch import RunningBatch
from dynamo_sim.engine.vllm.handoff import VllmHandoffs
from dynamo_sim.engine.vllm.pass_plan import PassPlan
from dynamo_sim.engine.vllm.preemption import Preemption
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.kv.allocation import NO_ROOM, TAKEN
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.timing.pass_timing import PassTiming


class Emission:
    """Gives every sequence that is ready its next token, and lets those go that have their last one.

    Args:
        batch, pool: what runs, and its blocks.
        preemption: makes room where a token finds none for its block.
        timing: durations of decode steps.
        tokens: where token times are written.
        handoffs: says what becomes of the blocks of those that end.
    """

    def __init__(
        self,
        batch: RunningBatch,
        pool: BlockPool,
        preemption: Preemption,
        timing: PassTiming,
        tokens: TokenLog,
        handoffs: VllmHandoffs,
    ) -> None:
        self._batch = batch
        self._pool = pool
        self._preemption = preemption
        self._timing = timing
        self._tokens = tokens
        self._handoffs = handoffs

    def emit(self, plan: PassPlan, step: Step, decode_start_ms: float) -> None:
        """One token for every ready sequence; sets the step's end, tokens and signals."""
        batch, pool = self._batch, self._pool
        group, size = batch.group, pool.block_size
        loose = []
        tokens = group.tokens
        group_openings = openings = group.openings_within(1)
        for sequence in batch.running[group.count :]:
            length = sequence.prompt_tokens + sequence.generated
            if sequence.computed >= length and sequence.generated < sequence.max_output_tokens:
                loose.append(sequence)
                tokens += length
                openings += length % size == 0
        count = group.count + len(loose)
        if not count:
            return
        end_ms = decode_start_ms + self._timing.decode_ms(pool.active * size, count, tokens // count)
        if group.count:
            if openings and openings > pool.available_now:
                batch.dissolve(plan)
                loose = ready(batch.running)
            else:
                step.tokens = group.count
                self._tokens.group_pass(end_ms, group.count)
                batch.group_pass_number = batch.pass_number
                self.emit_group(step, 1, group_openings, end_ms)
        for sequence in loose:
            # One may have been preempted meanwhile by one before it.
            if not sequence.running or (sequence.lease is not None and sequence.is_blocked):
                continue
            if self._generate(plan, sequence):
                step.tokens += 1
                sequence.emitted_pass = batch.pass_number
                self._tokens.token(sequence, end_ms)
                if sequence.generated == sequence.max_output_tokens:
                    self._end(sequence, step, end_ms)
                elif sequence.generated == 1:
                    step.signals.append((sequence.request, FIRST_TOKEN))
        step.forwards = step.tokens
        if step.tokens:
            step.ends_ms[0] = end_ms

    def _generate(self, plan: PassPlan, sequence: Sequence) -> bool:
        """Append a token, opening a block where one begins; False when there is none for it in this pass."""
        pool = self._pool
        length = sequence.prompt_tokens + sequence.generated + 1
        if length % pool.block_size == 1:
            table = sequence.table
            if length // pool.block_size > table.full_blocks:
                pool.promote(table)
            answer = pool.open(1)
            while answer is NO_ROOM:
                victim = self._preemption.preempt(plan, sequence)
                if victim is None or victim is sequence:
                    return False
                answer = pool.open(1)
            if answer is not TAKEN:
                sequence.lease = answer.lease
                return False
            table.held_blocks += 1
        sequence.generated += 1
        return True

    def _end(self, sequence: Sequence, step: Step, end_ms: float) -> None:
        """A sequence has its last token: its slot and its blocks are free for the next pass."""
        self._handoffs.ended(sequence)
        self._batch.remove(sequence)
        self._tokens.last_token(sequence, end_ms)
        step.signals.append((sequence.request, COMPLETED))

    # ------------------------------------------------------------ the lockstep group

    def emit_group(self, step: Step, passes: int, opened: int, end_ms: float) -> None:
        """A token in each of ``passes`` passes for every member; in the last one, which ends the step, members may end.

        The passes open ``opened`` blocks, for which there must be room. Token times but those of last tokens are noted
        by the caller.
        """
        batch, pool = self._batch, self._pool
        group = batch.group
        # Blocks of those that end serve only members behind them: what is missing has to be evicted before they end.
        if opened > pool.free:
            missing = self.missing_blocks(passes)
            if missing:
                pool.evict(missing)
        group.advance(passes, opened)
        if group.passes in group.ending:
            ended = group.pop_ended()
            batch.settle(ended)
            for sequence in ended:
                self._end(sequence, step, end_ms)
        if opened:
            pool.open(opened)

    def missing_blocks(self, passes: int) -> int:
        """Evictions the next ``passes`` passes of the group need; in the last of them members may end.

        In that pass members take their turns in running order, and who ends gives back its last, partial block. It
        serves those behind it.
        """
        group = self._batch.group
        size = group.block_size
        left = group.openings_within(passes)
        free = self._pool.free
        enders = group.ending.get(group.passes + passes)
        if enders is None:
            return max(0, left - free)
        opened = group.openings_within(passes - 1)
        missing = 0
        turns = iter(self._batch.running)
        for ender in enders:
            for member in turns:
                opened += (group.length(member) + passes) % size == 1
                if member is ender:
                    break
            left -= opened
            missing += max(0, opened - free)
            free = max(0, free - opened) + 1
            opened = 0
        return missing + max(0, left - free)


def ready(sequences: list[Sequence]) -> list[Sequence]:
    """Those whose known tokens are all computed and that have tokens left to generate."""
    return [
        s
        for s in sequences
        if s.computed >= s.prompt_tokens + s.generated and s.generated < s.max_output_tokens
    ]
