"""Decode passes of an SGLang-style worker between two decisions (`spec 05, 15`)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, repeat
from typing import TYPE_CHECKING

from dynamo_sim.engine.sglang.admission import Admission, closeness
from dynamo_sim.engine.step import Step

if TYPE_CHECKING:
    from dynamo_sim.engine.sglang.scheduler import SglangScheduler


def plan_stretch(
    engine: SglangScheduler, now_ms: float, max_passes: int, admission: Admission | None
) -> Step | None:
    """As many passes as admit nobody and retract nobody; None when not even one does.

    It ends with the pass in which a request ends or a page has to be kept at once, before the one in which
    the head of the queue may find room, and after one with an eviction where the order of the queue depends
    on what is cached.
    """
    batch = engine.batch
    if not batch.growing:
        return _plan_idling(engine, now_ms, max_passes)
    at_most = min(max_passes, engine.horizon)
    if admission is not None and admission.out_of_memory:
        at_most = 1
    if engine.observed and batch.is_mixed:  # the variance of the lengths moves
        at_most = 1
    next_event = min(min(batch.ending), batch.next_watched_page())
    at_most = min(at_most, next_event - batch.passes)
    if engine.queue.is_sorted:
        at_most = min(at_most, engine.cache.free // batch.growing + 1)
    passes = _undecided_passes(engine, at_most, None if admission is None else admission.refused_for)
    if not passes:
        return None
    ends = list(accumulate(_durations_ms(engine, passes), initial=now_ms))
    del ends[0]
    if ends[0] == now_ms:  # passes of no time belong to the instant they run in, each in its place
        del ends[1:]
    return Step(now_ms, ends, True, batch.growing, batch.growing)


def _undecided_passes(engine: SglangScheduler, at_most: int, refused_for: int | None) -> int:
    """How many passes have room for everybody and none for the head of the queue."""
    batch, cache = engine.batch, engine.cache
    growing, available, slack, page = batch.growing, cache.available, batch.slack_tokens, engine.page_tokens
    if refused_for is None and available - slack >= growing * (at_most + page):
        return at_most  # no member opens more than one page beyond what its tokens fill
    openings, clipping = batch.openings, batch.clipping
    alone = len(batch) == 1
    number = first = batch.passes
    reserve, falling, ratio = batch.reserve_tokens, batch.falling, engine.ratio.value
    last = number + at_most
    while number < last:
        opened = openings.get((number + 1) % page, 0) * page
        if available < growing:
            break
        if available - slack < opened and not alone:
            break  # a lone request goes on as long as there are slots at all
        available -= growing
        slack += opened - growing
        if refused_for is not None:
            if clipping and number > first:
                falling += clipping.get(number, 0)
            reserve -= falling
            ratio = engine.ratio.below(ratio)
            reserved = reserve * ratio
            if refused_for < max(0, available - slack) - reserved + closeness(reserved):
                return number + 1 - first
        number += 1
    return number - first


def _durations_ms(engine: SglangScheduler, passes: int) -> list[float]:
    """How long the next passes take; those from one of no time on are left out."""
    batch, limit = engine.batch, engine.pool_tokens
    growing, count, tokens = batch.growing, len(batch), batch.tokens
    lengths = range(tokens, tokens + passes * growing, growing)
    in_use: Iterable[int] = lengths if lengths[-1] <= limit else (min(length, limit) for length in lengths)
    contexts: Iterable[int] = (length // count for length in lengths)
    if growing == count:
        contexts = range(tokens // count, tokens // count + passes)
    durations = list(map(engine.timing.decode_ms, in_use, repeat(count), contexts))
    if 0.0 in durations:  # passes of no time belong to the instant they run in
        del durations[max(1, durations.index(0.0)) :]
    return durations


def _plan_idling(engine: SglangScheduler, now_ms: float, max_passes: int) -> Step | None:
    """Passes of requests that want no tokens: they take time and change nothing."""
    tokens, count = engine.batch.tokens, len(engine.batch)
    duration = engine.timing.decode_ms(min(tokens, engine.pool_tokens), count, tokens // count)
    if duration == 0.0:
        return None
    passes = min(max_passes, engine.horizon)
    ends = list(accumulate(repeat(duration, passes), initial=now_ms))
    return Step(now_ms, ends[1:], True, 0, 0)
