"""What to tell a person about an SGLang-style worker that cannot go on (`spec 05, 13`)."""

from __future__ import annotations

from dynamo_sim.engine.sglang.admission import demand
from dynamo_sim.engine.sglang.batch import RunningBatch
from dynamo_sim.engine.sglang.limits import Limits
from dynamo_sim.engine.sglang.queue import WaitingQueue
from dynamo_sim.kv.radix_cache import RadixCache


def dead_end_reason(
    batch: RunningBatch, queue: WaitingQueue, cache: RadixCache, limits: Limits
) -> str | None:
    """Why the requests of a worker do not end: the limit they met, and a remedy; None when it has none."""
    if not batch.members:
        return _why_refused(queue, cache, limits) if queue.waiting else None
    if not batch.growing:
        idle = next(iter(batch.members.values()))
        return (
            f"{idle.request.name} asks for 0 output tokens: it is admitted, never completes, and holds its "
            "slots and its place in the batch; ask for at least 1, or limit the run with max_sim_time_ms"
        )
    runner = next(s for s in batch.members.values() if s.max_output_tokens)
    tokens = runner.prompt_tokens + batch.generated(runner)
    final = runner.prompt_tokens + runner.max_output_tokens
    return (
        f"{runner.request.name} has {tokens} of its {final} tokens and finds no slot for the next one in a "
        f"pool of {_pool(limits)}, though nobody else can be retracted; raise num_gpu_blocks, or "
        f"clip_max_new_tokens={limits.clip_tokens} so that more is reserved for outputs"
    )


def _why_refused(queue: WaitingQueue, cache: RadixCache, limits: Limits) -> str:
    head = queue.waiting[0]
    behind = len(queue.waiting) - 1
    who = f"{head.request.name} is never admitted"
    if behind:
        who += f" and blocks {behind} request{'s' if behind > 1 else ''} behind it"
    chunk, page = limits.chunk_tokens, limits.page_tokens
    asked = demand(head, chunk, limits)
    if asked is None:
        if head.tokens == head.allocated_tokens:
            return f"{who}: it has no prompt tokens; give it at least 1"
        return f"{who}: chunked_prefill_size={chunk} is less than a page; raise it to at least {page}"
    if asked.charge > limits.input_tokens:
        return (
            f"{who}: its next {asked.charge} prompt tokens are more than max_prefill_tokens="
            f"{limits.input_tokens}; raise that, or lower chunked_prefill_size to split prompts"
        )
    if asked.charge > chunk:
        return (
            f"{who}: its {asked.tokens} prompt tokens are {asked.charge} in whole pages, more than "
            f"chunked_prefill_size={chunk}; raise that to at least {asked.charge}"
        )
    held = sum(sequence.allocated_tokens for sequence in queue.waiting)
    holders = f", {held} are held by prompts computed in part" if held else ""
    return (
        f"{who}: it asks for more room than {asked.charge} prompt and {asked.outputs} output tokens take, "
        f"and of {_pool(limits)} there are {cache.available} tokens to be had{holders}; raise "
        f"num_gpu_blocks, or lower clip_max_new_tokens={limits.clip_tokens}"
    )


def _pool(limits: Limits) -> str:
    pages = limits.pool_tokens // limits.page_tokens
    return f"num_gpu_blocks={pages} pages of {limits.page_tokens} tokens"
