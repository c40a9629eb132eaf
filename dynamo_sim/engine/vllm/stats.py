"""The forward-pass metrics of a vLLM-style worker (`spec 02, 11`)."""

from __future__ import annotations

from itertools import accumulate, takewhile
from operator import attrgetter
from typing import TYPE_CHECKING

from dynamo_sim.engine.step import PassStats, Step
from dynamo_sim.engine.vllm.pass_plan import PassPlan
from dynamo_sim.metrics.variance import variance, variance_of_sums

if TYPE_CHECKING:
    from dynamo_sim.engine.vllm.scheduler import VllmScheduler


def scheduled_stats(engine: VllmScheduler, plan: PassPlan) -> PassStats:
    """What a pass does, with lengths before its tokens."""
    stats = PassStats(used_kv_tokens=(engine.used_kv_tokens,))
    group = engine.group
    prompts: list[int] = []
    lengths = squares = 0
    for work in plan.work.values():
        if work.prompt_part > 0:
            prompts.append(work.prompt)
            stats.sum_prefill_tokens += work.used
            stats.sum_prefill_kv_tokens += work.prompt_before
        else:
            stats.num_decode_requests += 1
            lengths += work.length
            squares += work.length * work.length
    if plan.group_count:
        stats.num_decode_requests += group.count
        lengths += group.tokens
        squares += group.squared_tokens
    stats.num_prefill_requests = len(prompts)
    stats.var_prefill_length = variance(prompts)
    stats.sum_decode_kv_tokens = lengths
    stats.var_decode_kv_tokens = variance_of_sums(stats.num_decode_requests, lengths, squares)
    return stats


def stretch_stats(engine: VllmScheduler, step: Step) -> PassStats:
    """Of a stretch that has been planned, but not carried out."""
    group, size = engine.group, engine.block_size
    stats = PassStats(num_decode_requests=group.count, sum_decode_kv_tokens=group.tokens)
    stats.var_decode_kv_tokens = variance_of_sums(group.count, group.tokens, group.squared_tokens)
    stats.decode_kv_growth = group.count
    first = group.passes + 1
    opened = (group.openings[(first + index) % size] for index in range(len(step.ends_ms) - 1))
    stats.used_kv_tokens = [blocks * size for blocks in accumulate(opened, initial=engine.pool.active)]
    add_queue(stats, engine)
    return stats


def add_queue(stats: PassStats, engine: VllmScheduler) -> None:
    """What waits after the pass; preempted requests always stand before those that never ran."""
    waiting = engine.waiting
    preempted = [sequence.tokens for sequence in takewhile(attrgetter("preempted"), waiting)]
    stats.num_queued_decode = len(preempted)
    stats.sum_queued_decode_kv_tokens = sum(preempted)
    stats.var_queued_decode_kv_tokens = variance(preempted)
    stats.num_queued_prefill = len(waiting) - len(preempted)
    stats.sum_queued_prefill_tokens = engine.fresh_tokens
    stats.var_queued_prefill_length = variance_of_sums(
        stats.num_queued_prefill, engine.fresh_tokens, engine.fresh_squares
    )
