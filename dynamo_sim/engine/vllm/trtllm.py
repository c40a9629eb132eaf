"""The TRT-LLM-style scheduler: no request is admitted that might have to be evicted later (`spec 02, 9`)."""

from __future__ import annotations

from dynamo_sim.engine.vllm.pass_plan import PassPlan
from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.workload.request import Request


class TrtllmScheduler(VllmScheduler):
    """The vLLM engine under "guaranteed no evict": room for the whole answer is reserved at admission."""

    def new_sequence(self, request: Request, max_output_tokens: int) -> Sequence:
        room = self.total_kv_tokens - request.input_tokens
        return super().new_sequence(request, min(max_output_tokens, room) if room > 0 else max_output_tokens)

    def judge(self, sequence: Sequence) -> int | None:
        cached, held = self.pool.cached_prefix(sequence)
        size = self.block_size
        need = max(0, self._final_blocks(sequence) - held // size)
        group = self.group
        reserved = group.final_blocks - group.blocks
        for other in self.running[group.count :]:
            reserved += max(0, self._final_blocks(other) - -(-other.allocated // size))
        return None if need > max(0, self.pool.available - reserved) else cached

    def never_fits(self, sequence: Sequence) -> bool:
        return self._final_blocks(sequence) > self.pool.num_blocks

    def preempt(self, plan: PassPlan, requester: Sequence | None) -> Sequence | None:
        return None

    def _final_blocks(self, sequence: Sequence) -> int:
        return -(-(sequence.prompt_tokens + sequence.max_output_tokens) // self.block_size)
