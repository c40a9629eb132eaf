"""What to tell a person about an SGLang-style worker that cannot go on (`spec 05, 13`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from dynamo_sim.engine.sglang_admission import demand
from dynamo_sim.errors import SimulationError

if TYPE_CHECKING:
    from dynamo_sim.engine.sglang import SglangScheduler


def refuse_idling(engine: SglangScheduler) -> NoReturn:
    """Requests that want no tokens have kept the worker going for very long: the reference goes on for ever."""
    raise SimulationError(str(why_stuck(engine)))


def refuse_standstill(engine: SglangScheduler) -> NoReturn:
    """A pass of no time left every running request where it was: the reference repeats it for ever."""
    raise SimulationError(str(why_stuck(engine)))


def why_stuck(engine: SglangScheduler) -> str | None:
    """Why the requests of a worker do not end; None when it has none."""
    batch = engine.batch
    if batch.members:
        idle = [s for s in batch.members.values() if not s.max_output_tokens]
        if len(idle) == len(batch.members):
            return (
                f"{idle[0].request.name} asks for 0 output tokens: it is admitted but never completes, holds its slots "
                "and its place in the batch; ask for at least 1, or limit the run with max_sim_time_ms"
            )
        return _why_no_token(engine)
    return _why_refused(engine) if engine.queue else None


def _why_no_token(engine: SglangScheduler) -> str:
    runner = next(s for s in engine.batch.members.values() if s.max_output_tokens)
    tokens = runner.prompt_tokens + engine.batch.generated(runner)
    return (
        f"{runner.request.name} has {tokens} of {runner.prompt_tokens + runner.max_output_tokens} tokens and finds no "
        f"slot for the next one in a pool of {_pool(engine)}, though nobody else is running; raise num_gpu_blocks, or "
        f"raise clip_max_new_tokens={engine.clip_tokens} so that more is reserved for outputs"
    )


def _why_refused(engine: SglangScheduler) -> str:
    head = engine.queue.head
    name = head.request.name
    behind = len(engine.queue) - 1
    blocks = f" and blocks {behind} request{'s' if behind > 1 else ''} behind it" if behind else ""
    wanted = demand(engine, head, engine.chunk_tokens)
    if wanted is None:
        if not head.tokens - head.have:
            return f"{name} has no prompt tokens and is never admitted{blocks}; give it at least 1"
        return (
            f"{name} is never admitted{blocks}: chunked_prefill_size={engine.chunk_tokens} holds no whole page of "
            f"{engine.page_tokens} tokens; raise it to at least {engine.page_tokens}"
        )
    if wanted.charge > engine.input_tokens:
        return (
            f"{name} is never admitted{blocks}: its next {wanted.charge} prompt tokens are more than "
            f"max_prefill_tokens={engine.input_tokens}; raise that, or lower chunked_prefill_size to split prompts"
        )
    if wanted.charge > engine.chunk_tokens:
        return (
            f"{name} is never admitted{blocks}: {wanted.tokens} prompt tokens are {wanted.charge} in whole pages, "
            f"more than chunked_prefill_size={engine.chunk_tokens}; raise that to at least {wanted.charge}"
        )
    needed = wanted.charge + wanted.outputs
    held = sum(s.have for s in engine.queue)
    held_text = f" ({held} are held by prompts computed in part)" if held else ""
    return (
        f"{name} is never admitted{blocks}: it asks for room for more than {needed} tokens ({wanted.charge} prompt, "
        f"{wanted.outputs} output), and {engine.cache.available} of {_pool(engine)} can be had{held_text}; "
        f"raise num_gpu_blocks, or lower clip_max_new_tokens={engine.clip_tokens}"
    )


def _pool(engine: SglangScheduler) -> str:
    page = engine.page_tokens
    return f"num_gpu_blocks={engine.pool_tokens // page} pages of {page} tokens"
