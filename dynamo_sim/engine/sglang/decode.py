"""The decode step of an SGLang-style worker (`spec 05, 9 and 10`)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from dynamo_sim.engine.sglang import memory
from dynamo_sim.engine.sglang.sequence import SglangSequence
from dynamo_sim.engine.step import PassStats, SignalKind, Step

if TYPE_CHECKING:
    from dynamo_sim.engine.sglang.scheduler import SglangScheduler


def decode(
    engine: SglangScheduler, step: Step, newcomers: list[SglangSequence], stats: PassStats | None
) -> list[SglangSequence]:
    """One token, or a burst, for every running request; sets the step's end, tokens and signals.

    Args:
        step: ends where the decode step begins; stays so when slots are missing even for a single request.
        newcomers: those that entered the batch in this pass, in order; victims among them are taken out.
        stats: gets the slots in use.

    Returns:
        Requests that were retracted to make room, the first one first.
    """
    batch, cache = engine.batch, engine.cache
    if not batch.members:
        return []
    victims, needed = _make_room(engine, newcomers)
    cache.evict(needed - cache.free)
    if stats is not None:
        stats.used_kv_tokens = (engine.used_kv_tokens,)
    if needed > cache.free:
        return victims
    count = len(batch)
    tokens = min(batch.tokens, engine.pool_tokens)
    end_ms = step.ends_ms[0] + engine.timing.decode_ms(tokens, count, batch.tokens // count)
    step.ends_ms[0] = end_ms
    if engine.sampler is not None:
        _emit_bursts(engine, step)
        return victims
    cache.free -= needed
    step.tokens = step.forwards = batch.growing
    old = batch.growing
    for sequence in newcomers:
        if sequence.max_output_tokens:
            old -= 1
    if old:
        engine.gaps.add(end_ms - engine.emitted_ms, old)
    for sequence in engine.with_one_token:
        sequence.request.second_token_ms = end_ms
    engine.with_one_token.clear()
    emit(engine, step, newcomers)
    return victims


def _make_room(engine: SglangScheduler, newcomers: list[SglangSequence]) -> tuple[list[SglangSequence], int]:
    """Retract until the rest can go on: who had to, and how many slots the rest needs."""
    batch, cache = engine.batch, engine.cache
    victims: list[SglangSequence] = []
    while True:
        needed, grow_pages = _needs(engine)
        available = cache.available
        if available >= needed and max(0, available - batch.slack_tokens) >= grow_pages * engine.page_tokens:
            return victims, needed
        if len(batch) == 1:
            return victims, needed
        victim = batch.victim()
        batch.remove(victim)
        if victim.fresh:
            if victim in newcomers:
                newcomers.remove(victim)
        else:
            victim.emitted_ms = engine.emitted_ms
            if engine.sampler is None:
                _catch_up(engine, victim)
            if victim in engine.with_one_token:
                engine.with_one_token.remove(victim)
        memory.retract(cache, victim)
        engine.preemptions += 1
        victims.append(victim)


def _needs(engine: SglangScheduler) -> tuple[int, int]:
    """Slots the next tokens need at most, and pages they open."""
    batch = engine.batch
    if engine.sampler is None:
        return batch.growing, batch.next_openings
    longest, page = len(engine.sampler.rates) + 1, engine.page_tokens
    needed = pages = 0
    for sequence in batch.members.values():
        length = sequence.prompt_tokens + sequence.generated
        burst = min(longest, sequence.left)
        needed += burst
        pages += -(-(length + burst) // page) - -(-length // page)
    return needed, pages


def _catch_up(engine: SglangScheduler, sequence: SglangSequence) -> None:
    """Keep the pages a sequence has filled in lockstep; the last one in the pass in which it was filled."""
    batch = engine.batch
    pages, beyond = divmod(sequence.tokens, engine.page_tokens)
    stamp = engine.cache.stamp_before(batch.passes - beyond, sequence.entry)
    memory.keep(engine.cache, sequence, pages, stamp, by_page=True)


def emit(engine: SglangScheduler, step: Step, newcomers: list[SglangSequence]) -> None:
    """A token for every growing member at the end of the step; who has its last one leaves.

    Newcomers, whose prompts others can match from now on, and watched members keep their pages at once; those
    all others have filled are kept when they leave (`_catch_up`).
    """
    batch, cache = engine.batch, engine.cache
    end_ms = step.ends_ms[-1]
    batch.advance(1)
    number = cache.round = batch.passes
    engine.emitted_ms = end_ms
    page = engine.page_tokens
    enders = batch.ending.pop(number, ())
    for sequence in batch.watched.values():
        length = sequence.prompt_tokens + number - sequence.origin
        if not sequence.fresh and length % page == 0 and sequence not in enders:
            memory.keep(cache, sequence, length // page, cache.stamp_before(number, sequence.entry))
    starters = []
    for sequence in newcomers:
        if not sequence.max_output_tokens:
            continue
        generated = number - sequence.origin
        _note_first(engine, sequence, generated, end_ms)
        if generated < sequence.max_output_tokens:
            if generated == 1:
                starters.append(sequence)
            sequence.fresh = False
            length = sequence.prompt_tokens + generated
            memory.keep(cache, sequence, length // page, cache.stamp_before(number, sequence.entry))
    for sequence in enders:
        batch.remove(sequence)
    for sequence in enders:
        request = sequence.request
        request.last_token_ms = end_ms
        request.emitted_tokens = sequence.generated
        memory.release(cache, sequence, by_page=not sequence.fresh)
    _signal(step, enders, starters)


def _signal(step: Step, enders: Sequence[SglangSequence], starters: Sequence[SglangSequence]) -> None:
    """Signal last tokens and first ones in running order."""
    signals = [(sequence.entry, sequence.request, SignalKind.COMPLETED) for sequence in enders]
    signals += [(sequence.entry, sequence.request, SignalKind.FIRST_TOKEN) for sequence in starters]
    signals.sort(key=itemgetter(0))
    step.signals += [(request, kind) for _, request, kind in signals]


def _note_first(engine: SglangScheduler, sequence: SglangSequence, generated: int, end_ms: float) -> None:
    """Note the first token since a sequence entered the batch."""
    if generated == 1:
        sequence.request.first_token_ms = end_ms
        if sequence.max_output_tokens > 1:
            engine.with_one_token.append(sequence)
        return
    if generated == 2:
        sequence.request.second_token_ms = end_ms
    engine.gaps.add(end_ms - sequence.emitted_ms, 1)


def _emit_bursts(engine: SglangScheduler, step: Step) -> None:
    """A burst of accepted tokens for every member; all of them carry the end of the pass."""
    sampler, batch, cache = engine.sampler, engine.batch, engine.cache
    assert sampler is not None
    page, end_ms = engine.page_tokens, step.ends_ms[0]
    members = list(batch.members.values())
    bursts = [sampler.burst(sequence.left) for sequence in members]
    enders = []
    for sequence, burst in zip(members, bursts, strict=True):
        if not burst:
            continue
        step.tokens += burst
        step.forwards += 1
        if not sequence.generated and sequence.max_output_tokens > 1:
            step.signals.append((sequence.request, SignalKind.FIRST_TOKEN))
        cache.free -= burst
        for generated in range(sequence.generated + 1, sequence.generated + burst + 1):
            if generated == 1:
                sequence.request.first_token_ms = end_ms
            else:
                if generated == 2:
                    sequence.request.second_token_ms = end_ms
                engine.gaps.add(end_ms - sequence.emitted_ms, 1)
            sequence.emitted_ms = end_ms
            length = sequence.prompt_tokens + generated
            if generated < sequence.max_output_tokens:
                memory.keep(cache, sequence, length // page, cache.now())
        if sequence.generated + burst == sequence.max_output_tokens:
            batch.remove(sequence)
            sequence.generated += burst
            step.signals.append((sequence.request, SignalKind.COMPLETED))
            enders.append(sequence)
        else:
            batch.leap(sequence, burst)
        sequence.fresh = False
    engine.emitted_ms = end_ms
    for sequence in enders:
        request = sequence.request
        request.last_token_ms = end_ms
        request.emitted_tokens = sequence.generated
        memory.release(cache, sequence, by_page=False)
