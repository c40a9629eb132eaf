"""Whether the head of the queue may run now (`spec 02, 8`)."""

from __future__ import annotations

from typing import Protocol

from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.workload.request import Request


class AdmissionPolicy(Protocol):
    """Decides about requests that ask for a place in the batch."""

    def output_tokens(self, request: Request) -> int:
        """How many tokens an arriving request may generate."""

    def can_admit(self, sequence: Sequence) -> int | None:
        """Cached prompt tokens of the head of the queue if there is room for it now, None if it has to wait."""

    def exceeds_pool(self, sequence: Sequence) -> bool:
        """Whether there will never be room for a request that has to wait; then it is rejected if it never ran."""


class KnownTokensFit:
    """vLLM: there must be room for the tokens known so far; nothing is set aside for those to come."""

    def __init__(self, pool: BlockPool) -> None:
        self._pool = pool

    def output_tokens(self, request: Request) -> int:
        return request.output_tokens

    def exceeds_pool(self, sequence: Sequence) -> bool:
        return -(-sequence.tokens // self._pool.block_size) > self._pool.num_blocks

    def can_admit(self, sequence: Sequence) -> int | None:
        pool = self._pool
        size, prompt = pool.block_size, sequence.prompt_tokens
        cached, held = pool.cached_prefix(sequence.table)
        needed = -(-(prompt + sequence.generated) // size)
        if held:
            needed -= min(held, prompt // size)
        if needed > pool.free + pool.inactive:
            return None
        return min(cached * size, prompt) if cached else 0
