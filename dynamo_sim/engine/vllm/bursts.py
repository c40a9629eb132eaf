"""The token half of a pass with speculative decoding (`spec 04, 6.2`)."""

from __future__ import annotations

from dynamo_sim.engine.step import FIRST_TOKEN, Step
from dynamo_sim.engine.token_log import TokenLog
from dynamo_sim.engine.vllm.batch import RunningBatch
from dynamo_sim.engine.vllm.emission import Emission, ready
from dynamo_sim.engine.vllm.handoff import VllmHandoffs
from dynamo_sim.engine.vllm.pass_plan import PassPlan
from dynamo_sim.engine.vllm.preemption import Preemption
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.kv.allocation import NO_ROOM, TAKEN, BlockedUntil
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.timing.pass_timing import PassTiming
from dynamo_sim.timing.speculative import BurstSampler


class BurstEmission(Emission):
    """A burst of accepted tokens for every ready sequence, all at the end of the pass.

    Room for the longest possible bursts is set aside before the step is timed, and what is left of it is given back.
    """

    def __init__(
        self,
        batch: RunningBatch,
        pool: BlockPool,
        preemption: Preemption,
        timing: PassTiming,
        tokens: TokenLog,
        handoffs: VllmHandoffs,
        sampler: BurstSampler,
    ) -> None:
        super().__init__(batch, pool, preemption, timing, tokens, handoffs)
        self._sampler = sampler

    def emit(self, plan: PassPlan, step: Step, decode_start_ms: float) -> None:
        pool = self._pool
        while True:
            batch = [s for s in ready(self._batch.running) if s.lease is None or not s.is_blocked]
            if not batch:
                return
            reserved = sum(self._longest_burst_blocks(sequence) for sequence in batch)
            active = pool.active  # the step is timed without the blocks set aside
            answer = pool.open(reserved)
            if answer is TAKEN:
                break
            if isinstance(answer, BlockedUntil):
                for sequence in batch:
                    sequence.lease = answer.lease
                return
            assert answer is NO_ROOM
            if self._preemption.preempt(plan, batch[0] if len(self._batch.running) == 1 else None) is None:
                return
        context = sum(s.prompt_tokens + s.generated for s in batch) // len(batch)
        end_ms = decode_start_ms + self._timing.decode_ms(active * pool.block_size, len(batch), context)
        bursts = [self._sampler.burst(s.max_output_tokens - s.generated) for s in batch]
        for sequence, burst in zip(batch, bursts, strict=True):
            if not sequence.generated and sequence.max_output_tokens > 1:
                step.signals.append((sequence.request, FIRST_TOKEN))
            for _ in range(burst):
                reserved -= self._append(sequence)
                self._tokens.token(sequence, end_ms)
            step.tokens += burst
            if sequence.generated == sequence.max_output_tokens:
                self._end(sequence, step, end_ms)
            else:
                sequence.computed = sequence.prompt_tokens + sequence.generated - 1
        pool.give_back(reserved)
        step.forwards = len(batch)
        step.ends_ms[0] = end_ms

    def _longest_burst_blocks(self, sequence: Sequence) -> int:
        """Blocks the longest burst of a sequence opens."""
        size = self._pool.block_size
        length = sequence.prompt_tokens + sequence.generated
        burst = min(len(self._sampler.rates) + 1, sequence.max_output_tokens - sequence.generated)
        return -(-(length + burst) // size) - -(-length // size)

    def _append(self, sequence: Sequence) -> int:
        """Append a token; the number of reserved blocks it takes."""
        pool, table = self._pool, sequence.table
        sequence.generated += 1
        length = sequence.prompt_tokens + sequence.generated
        if length % pool.block_size != 1:
            return 0
        if length // pool.block_size > table.full_blocks:
            pool.promote(table)
        table.held_blocks += 1
        return 1
