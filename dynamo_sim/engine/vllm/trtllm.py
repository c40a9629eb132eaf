"""TRT-LLM's "guaranteed no evict": no request is admitted that might have to be preempted later (`spec 02, 9`)."""

from __future__ import annotations

from dynamo_sim.engine.vllm.batch import RunningBatch
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.workload.request import Request


class WholeAnswerFits:
    """There must be room for the prompt and the longest possible answer, beside those of all running requests."""

    def __init__(self, pool: BlockPool, batch: RunningBatch) -> None:
        self._pool = pool
        self._batch = batch

    def output_tokens(self, request: Request) -> int:
        limit = self._pool.num_blocks * self._pool.block_size - request.input_tokens
        return min(request.output_tokens, limit) if limit > 0 else request.output_tokens

    def exceeds_pool(self, sequence: Sequence) -> bool:
        return sequence.final_blocks > self._pool.num_blocks

    def can_admit(self, sequence: Sequence) -> int | None:
        pool, batch = self._pool, self._batch
        size, prompt = pool.block_size, sequence.prompt_tokens
        cached, held = pool.cached_prefix(sequence.table)
        needed = max(0, sequence.final_blocks - min(held, prompt // size))
        reserved = batch.final_blocks - batch.group.blocks
        for other in batch.running[batch.group.count :]:
            reserved -= other.table.held_blocks
        return None if needed > max(0, pool.available - reserved) else min(cached * size, prompt)
