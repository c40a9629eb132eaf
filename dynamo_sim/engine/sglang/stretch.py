"""Decode passes of an SGLang-style worker between two decisions (`spec 05, 15`)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, repeat

from dynamo_sim.engine.sglang.admission import rounding_margin
from dynamo_sim.engine.sglang.batch import RunningBatch
from dynamo_sim.engine.sglang.ratio import NewTokenRatio
from dynamo_sim.kv.radix_cache import RadixCache
from dynamo_sim.timing.pass_timing import PassTiming


def passes_until_event(batch: RunningBatch) -> int:
    """Passes up to the one in which the next request ends, or a page has to be stored at once."""
    return min(min(batch.group.ending), batch.next_page_to_store()) - batch.group.passes


def passes_until(
    until_ms: float, batch: RunningBatch, timing: PassTiming, pool_tokens: int, now_ms: float
) -> int:
    """About how many passes it takes to reach a time; passes get longer as requests grow, so hardly ever too few."""
    tokens, count = batch.tokens, len(batch.members)
    duration = timing.decode_ms(min(tokens, pool_tokens), count, tokens // count)
    return 1 if duration == 0.0 else 2 + int((until_ms - now_ms) / duration)


def undecided_passes(
    batch: RunningBatch, cache: RadixCache, ratio: NewTokenRatio, at_most: int, refused_for: int | None
) -> int:
    """How many of the next passes retract nobody and do not let the head of the queue in.

    Args:
        at_most: look no further.
        refused_for: tokens the head of the queue waits for; None when no number of them lets it in.
    """
    group, page = batch.group, batch.page_tokens
    growing, available, slack = group.count, cache.available, batch.slack_tokens
    if refused_for is None and available - slack >= growing * (at_most + page):
        return at_most  # no member opens more than one page beyond what its tokens fill
    openings, clipping = group.openings, batch.clipping
    alone = len(batch.members) == 1
    number = first = group.passes
    reserve, falling, share = batch.reserve_tokens, batch.falling, ratio.value
    last = number + at_most
    while number < last:
        opened = openings[(number + 1) % page] * page
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
            share = ratio.below(share)
            reserved = reserve * share
            if refused_for < max(0, available - slack) - reserved + rounding_margin(reserved):
                return number + 1 - first
        number += 1
    return number - first


def ends_of_passes(
    batch: RunningBatch, timing: PassTiming, pool_tokens: int, now_ms: float, passes: int
) -> list[float]:
    """Ends of the next passes; passes from one of no time on are left out, but for the first."""
    ends = list(accumulate(_durations_ms(batch, timing, pool_tokens, passes), initial=now_ms))
    del ends[0]
    if ends[0] == now_ms:  # passes of no time belong to the instant they run in, each in its place
        del ends[1:]
    return ends


def _durations_ms(batch: RunningBatch, timing: PassTiming, pool_tokens: int, passes: int) -> list[float]:
    """How long the next passes take; those from one of no time on are left out."""
    growing, count, tokens = batch.group.count, len(batch.members), batch.tokens
    lengths = range(tokens, tokens + passes * growing, growing)
    in_use: Iterable[int] = lengths
    if lengths[-1] > pool_tokens:
        in_use = (min(length, pool_tokens) for length in lengths)
    contexts: Iterable[int] = (length // count for length in lengths)
    if growing == count:
        contexts = range(tokens // count, tokens // count + passes)
    durations = list(map(timing.decode_ms, in_use, repeat(count), contexts))
    if 0.0 in durations:  # passes of no time belong to the instant they run in
        del durations[max(1, durations.index(0.0)) :]
    return durations


def ends_of_idle_passes(
    batch: RunningBatch, timing: PassTiming, pool_tokens: int, now_ms: float, passes: int
) -> list[float]:
    """Ends of passes of requests that want no tokens: they take time and change nothing. Empty if they take none."""
    tokens, count = batch.tokens, len(batch.members)
    duration = timing.decode_ms(min(tokens, pool_tokens), count, tokens // count)
    if duration == 0.0:
        return []
    return list(accumulate(repeat(duration, passes), initial=now_ms))[1:]
