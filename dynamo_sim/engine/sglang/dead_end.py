"""What to tell a person about an SGLang-style worker that cannot go on (`spec 05, 13`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from dynamo_sim.engine.sglang.admission import demand
from dynamo_sim.errors import SimulationError

if TYPE_CHECKING:
    from dynamo_sim.engine.sglang.scheduler import SglangScheduler


def refuse_dead_end(engine: SglangScheduler) -> NoReturn:
    """End a run in which the reference would repeat passes for ever.

    Raises:
        SimulationError: always.
    """
    raise SimulationError(f"the run reached a dead end: {dead_end_reason(engine)}")


def dead_end_reason(engine: SglangScheduler) -> str | None:
    """Why the requests of a worker do not end: the limit they met, and a remedy; None when it has none."""
    batch = engine.batch
    if not batch.members:
        return _why_refused(engine) if engine.queue else None
    if not batch.growing:
        idle = next(iter(batch.members.values()))
        return (
            f"{idle.request.name} asks for 0 output tokens: it is admitted, never completes, and holds its "
            "slots and its place in the batch; ask for at least 1, or limit the run with max_sim_time_ms"
        )
    runner = next(s for s in batch.members.values() if s.max_output_tokens)
    tokens = runner.prompt_tokens + batch.generated(runner)
    wanted = runner.prompt_tokens + runner.max_output_tokens
    return (
        f"{runner.request.name} has {tokens} of its {wanted} tokens and finds no slot for the next one in a "
        f"pool of {_pool(engine)}, though nobody else can be retracted; raise num_gpu_blocks, or "
        f"clip_max_new_tokens={engine.clip_tokens} so that more is reserved for outputs"
    )


def _why_refused(engine: SglangScheduler) -> str:
    head = engine.queue.head
    behind = len(engine.queue) - 1
    who = f"{head.request.name} is never admitted"
    if behind:
        who += f" and blocks {behind} request{'s' if behind > 1 else ''} behind it"
    chunk, page = engine.chunk_tokens, engine.page_tokens
    wanted = demand(engine, head, chunk)
    if wanted is None:
        if head.tokens == head.have:
            return f"{who}: it has no prompt tokens; give it at least 1"
        return f"{who}: chunked_prefill_size={chunk} is less than a page; raise it to at least {page}"
    if wanted.charge > engine.input_tokens:
        return (
            f"{who}: its next {wanted.charge} prompt tokens are more than max_prefill_tokens="
            f"{engine.input_tokens}; raise that, or lower chunked_prefill_size to split prompts"
        )
    if wanted.charge > chunk:
        return (
            f"{who}: its {wanted.tokens} prompt tokens are {wanted.charge} in whole pages, more than "
            f"chunked_prefill_size={chunk}; raise that to at least {wanted.charge}"
        )
    held = sum(sequence.have for sequence in engine.queue)
    holders = f", {held} are held by prompts computed in part" if held else ""
    return (
        f"{who}: it asks for more room than {wanted.charge} prompt and {wanted.outputs} output tokens take, "
        f"and of {_pool(engine)} there are {engine.cache.available} tokens to be had{holders}; raise "
        f"num_gpu_blocks, or lower clip_max_new_tokens={engine.clip_tokens}"
    )


def _pool(engine: SglangScheduler) -> str:
    page = engine.page_tokens
    return f"num_gpu_blocks={engine.pool_tokens // page} pages of {page} tokens"
