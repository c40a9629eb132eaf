"""What to tell a person about a vLLM-style worker that cannot go on (`spec 02, 12`)."""

from __future__ import annotations

from collections.abc import Sequence as List

from dynamo_sim.engine.vllm.queue import WaitingQueue
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.errors import SimulationError
from dynamo_sim.kv.block_pool import BlockPool


def never_finishes(sequence: Sequence, pool: BlockPool) -> SimulationError:
    """A request alone on its worker is larger than the pool."""
    request, size = sequence.request, pool.block_size
    needed = sequence.final_blocks
    return SimulationError(
        f"{request.name} can never finish: its {sequence.prompt_tokens} prompt and "
        f"{sequence.max_output_tokens} output tokens need {needed} KV blocks of {size} tokens, the "
        f"worker has num_gpu_blocks={pool.num_blocks}; raise num_gpu_blocks to at least {needed} or shorten it"
    )


def endless_preemption(now_ms: float, requests: int, pool: BlockPool) -> SimulationError:
    """Requests preempt each other and none gets a token."""
    return SimulationError(
        f"at {now_ms:g} ms {requests} requests of a worker preempt each other without end: "
        f"num_gpu_blocks={pool.num_blocks} of {pool.block_size} tokens leave none of them room for its next "
        "token; raise num_gpu_blocks or lower max_num_seqs"
    )


def stuck_reason(
    running: List[Sequence], queue: WaitingQueue, max_tokens: int, chunked_prefill: bool
) -> str | None:
    """Why the requests of a worker do not go on; None when it has none.

    Args:
        running, queue: its requests.
        max_tokens: token budget of a pass.
        chunked_prefill: whether a prompt may be computed in several passes.
    """
    without_output = [s for s in running if s.max_output_tokens == 0]
    if without_output:
        name = without_output[0].request.name
        return f"{name} asks for 0 output tokens and never completes; ask for at least 1"
    if running:
        return f"{len(running)} running requests make no progress"
    if not queue.waiting:
        return None
    head = queue.waiting[0]
    if not chunked_prefill and head.prompt_tokens > max_tokens:
        return (
            f"{head.request.name} has {head.prompt_tokens} prompt tokens, more than "
            f"max_num_batched_tokens={max_tokens} while enable_chunked_prefill is false, and blocks "
            f"{len(queue.waiting) - 1} requests behind it; enable chunked prefill or raise max_num_batched_tokens"
        )
    handed_over = sum(1 for sequence in queue.waiting if sequence.computed)
    if head.preempted and handed_over:
        return (
            f"{head.request.name} was preempted and needs its blocks again, but {handed_over} handed-over requests "
            "behind it hold theirs; raise num_gpu_blocks or lower max_num_seqs"
        )
    return f"{head.request.name} cannot be admitted"
