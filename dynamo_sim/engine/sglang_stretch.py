"""Decode passes of an SGLang-style worker between two decisions (`spec 05, 15`)."""

from __future__ import annotations

from itertools import accumulate, repeat
from typing import TYPE_CHECKING

from dynamo_sim.engine.sglang_admission import Admission, closeness
from dynamo_sim.engine.step import PassStats, Step
from dynamo_sim.metrics.variance import variance_of_sums

if TYPE_CHECKING:
    from dynamo_sim.engine.sglang import SglangScheduler


def plan_stretch(
    engine: SglangScheduler, now_ms: float, max_passes: int, admission: Admission | None
) -> Step | None:
    """As many passes as admit nobody and retract nobody; None when not even one does.

    It ends with the pass in which a request ends or a page has to be kept at once, before the one in which the head of
    the queue may find room, and after one with an eviction where the order of the queue depends on what is cached.
    """
    batch, cache, timing = engine.batch, engine.cache, engine.timing
    growing, count = batch.growing, len(batch)
    if not growing:
        return _plan_idling(engine, now_ms, max_passes)
    page = engine.page_tokens
    openings, ending, clipping = batch.openings, batch.ending, batch.clipping
    limit = engine.pool_tokens
    decode_ms = timing.decode_ms
    alone = count == 1
    tokens, available, slack = batch.tokens, cache.available, batch.slack_tokens
    number = batch.passes
    if admission is not None and admission.out_of_memory:
        max_passes = 1
    if engine.observed and batch.is_mixed:  # the variance of the lengths moves
        max_passes = 1
    last = min(number + min(max_passes, engine.horizon), batch.next_watched_page())
    refused_for = admission.refused_for if admission is not None else None
    free = cache.free if engine.queue.is_sorted else available
    reserve, falling, ratio = batch.reserve_tokens, batch.falling, engine.ratio
    now = now_ms
    ends: list[float] = []
    while True:
        opened = openings[(number + 1) % page]
        if available < growing or available - slack < opened * page:
            # A lone request goes on as long as there are slots at all.
            if not alone or available < growing:
                break
        duration = decode_ms(tokens if tokens < limit else limit, count, tokens // count)
        if duration == 0.0 and ends:
            break  # a pass of no time belongs to the instant it runs in
        number += 1
        now += duration
        ends.append(now)
        if number == last or number in ending or duration == 0.0 or free < growing:
            break
        tokens += growing
        available -= growing
        free -= growing
        slack += opened * page - growing
        if refused_for is not None:
            falling += clipping.get(number - 1, 0) if clipping else 0
            reserve -= falling
            ratio -= engine.ratio_step
            if ratio < engine.lowest_ratio:
                ratio = engine.lowest_ratio
            reserved = reserve * ratio
            room = available - slack if available > slack else 0
            if refused_for < room - reserved + closeness(reserved):
                break
    if not ends:
        return None
    return Step(now_ms, ends, True, growing, growing)


def _plan_idling(engine: SglangScheduler, now_ms: float, max_passes: int) -> Step | None:
    """Passes of requests that want no tokens: they take time and change nothing."""
    tokens, count = engine.batch.tokens, len(engine.batch)
    duration = engine.timing.decode_ms(min(tokens, engine.pool_tokens), count, tokens // count)
    if duration == 0.0:
        return None
    passes = min(max_passes, engine.horizon)
    ends = list(accumulate(repeat(duration, passes), initial=now_ms))
    return Step(now_ms, ends[1:], True, 0, 0)


def stretch_stats(engine: SglangScheduler, step: Step) -> PassStats:
    """Forward-pass metrics of a stretch that has been planned, but not carried out."""
    batch = engine.batch
    used = engine.pool_tokens - engine.cache.available
    growing = batch.growing
    stats = PassStats(
        num_decode_requests=len(batch),
        sum_decode_kv_tokens=batch.tokens,
        var_decode_kv_tokens=variance_of_sums(len(batch), batch.tokens, batch.squared_tokens),
        decode_kv_growth=growing,
        used_kv_tokens=[max(0, used + index * growing) for index in range(len(step.ends_ms))],
    )
    engine.queue.fill(stats)
    return stats
