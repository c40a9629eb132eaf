"""Decode passes of a lockstep group between two decisions (`spec 02, 14`)."""

from __future__ import annotations

from dynamo_sim.engine.lockstep import LockstepGroup
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.timing.pass_timing import PassTiming


def stretch_ends(
    group: LockstepGroup[Sequence],
    pool: BlockPool,
    timing: PassTiming,
    now_ms: float,
    max_passes: int,
    until_ms: float,
) -> list[float]:
    """Ends of as many passes as change nothing but lengths and blocks; empty when there is not even one.

    The first pass starts at ``now_ms``. The last one is the one in which a member ends, before one that might have to
    preempt somebody for its blocks, the first to end at or after ``until_ms``, or number ``max_passes``.
    """
    openings, ending, size = group.openings, group.ending, pool.block_size
    count = group.count
    number = group.passes
    residue = (number + 1) % size
    # An opening counts from the pass after it: blocks that are opened in a pass play no part in its duration.
    following = openings[residue]
    active, available = pool.active, pool.available_now
    if following > available:
        return []
    decode_ms, context_matters = timing.decode_ms, timing.context_matters
    context = group.tokens // count
    duration = decode_ms(active * size, count, context)
    now = now_ms + duration
    ends = [now]
    last = number + max_passes
    if now == now_ms:  # passes of no time belong to the instant they run in, each in its place
        return ends
    while True:
        number += 1
        opened = following
        if opened:
            active += opened
            available -= opened
        residue += 1
        if residue == size:
            residue = 0
        following = openings[residue]
        if number in ending or following > available or number == last or now >= until_ms:
            return ends
        if opened or context_matters:
            context += 1
            duration = decode_ms(active * size, count, context)
            if duration == 0.0:
                return ends
        now += duration
        ends.append(now)
