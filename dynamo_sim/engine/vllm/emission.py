"""The token half of a vLLM-style pass, sequence by sequence (`spec 02, 10`; `spec 04, 6.2`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_sim.engine.step import SignalKind, Step
from dynamo_sim.engine.vllm.pass_plan import PassPlan
from dynamo_sim.engine.vllm.sequence import Sequence

if TYPE_CHECKING:
    from dynamo_sim.engine.vllm.scheduler import VllmScheduler


def ready(sequences: list[Sequence]) -> list[Sequence]:
    """Those whose known tokens are all computed and that have tokens left to generate."""
    return [
        s
        for s in sequences
        if s.computed >= s.prompt_tokens + s.generated and s.generated < s.max_output_tokens
    ]


def emit_tokens(engine: VllmScheduler, plan: PassPlan, step: Step, decode_start_ms: float) -> None:
    """One token for every ready sequence; sets the step's end, tokens and signals."""
    group, pool = engine.group, engine.pool
    loose = ready(engine.running[group.count :])
    count = group.count + len(loose)
    if not count:
        return
    size = engine.block_size
    context = (group.tokens + sum(s.prompt_tokens + s.generated for s in loose)) // count
    end_ms = decode_start_ms + engine.decode_ms(pool.active, count, context)
    if group.count:
        openings = group.next_openings + sum((s.prompt_tokens + s.generated) % size == 0 for s in loose)
        if openings > pool.available:
            engine.dissolve_group(plan)
            loose = ready(engine.running)
        else:
            step.tokens = group.count
            engine.advance_group(end_ms, step)
    for sequence in loose:
        if sequence.running and generate(engine, plan, sequence):
            step.tokens += 1
            engine.note_token(sequence, end_ms)
            if sequence.generated == sequence.max_output_tokens:
                engine.end(sequence, end_ms, step)
            elif sequence.generated == 1:
                step.signals.append((sequence.request, SignalKind.FIRST_TOKEN))
    step.forwards = step.tokens
    if step.tokens:
        step.ends_ms[0] = end_ms


def generate(engine: VllmScheduler, plan: PassPlan, sequence: Sequence) -> bool:
    """Append a token, opening a block where one begins; False when the sequence itself had to make room."""
    pool, size = engine.pool, engine.block_size
    length = sequence.prompt_tokens + sequence.generated + 1
    if length % size == 1:
        filled = length // size - 1
        if filled >= sequence.full_blocks:
            pool.promote(sequence, filled)
        while not pool.open_block():
            victim = engine.preempt(plan, sequence)
            if victim is None or victim is sequence:
                return False
        sequence.allocated = length
    sequence.generated += 1
    return True


def emit_bursts(engine: VllmScheduler, plan: PassPlan, step: Step, decode_start_ms: float) -> None:
    """Speculative decoding: a burst of accepted tokens for every ready sequence.

    Room for the longest possible bursts is set aside before the step is timed, and what is left of it is given back.
    """
    assert engine.sampler is not None
    pool, size = engine.pool, engine.block_size
    longest = len(engine.sampler.rates) + 1
    while True:
        batch = ready(engine.running)
        if not batch:
            return
        reserved = 0
        for s in batch:
            length = s.prompt_tokens + s.generated
            burst = min(longest, s.max_output_tokens - s.generated)
            reserved += -(-(length + burst) // size) - -(-length // size)
        if reserved <= pool.available:
            break
        if engine.preempt(plan, batch[0] if len(engine.running) == 1 else None) is None:
            return
    context = sum(s.prompt_tokens + s.generated for s in batch) // len(batch)
    end_ms = decode_start_ms + engine.decode_ms(pool.active, len(batch), context)
    pool.take_fresh(reserved)
    bursts = [engine.sampler.burst(s.max_output_tokens - s.generated) for s in batch]
    for sequence, burst in zip(batch, bursts, strict=True):
        if not sequence.generated and sequence.max_output_tokens > 1:
            step.signals.append((sequence.request, SignalKind.FIRST_TOKEN))
        for _ in range(burst):
            length = sequence.prompt_tokens + sequence.generated + 1
            if length % size == 1:
                filled = length // size - 1
                if filled >= sequence.full_blocks:
                    pool.promote(sequence, filled)
                reserved -= 1
            sequence.generated += 1
            engine.note_token(sequence, end_ms)
        step.tokens += burst
        if sequence.generated == sequence.max_output_tokens:
            engine.end(sequence, end_ms, step)
        else:
            sequence.allocated = sequence.prompt_tokens + sequence.generated
            sequence.computed = sequence.allocated - 1
    pool.free += reserved
    step.forwards = len(batch)
    step.ends_ms[0] = end_ms
