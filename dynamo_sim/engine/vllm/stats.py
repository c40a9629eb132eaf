"""The forward-pass metrics of a vLLM-style worker (`spec 02, 11`)."""

from __future__ import annotations

from itertools import accumulate

from dynamo_sim.engine.lockstep import LockstepGroup
from dynamo_sim.engine.step import PassStats
from dynamo_sim.engine.vllm.pass_plan import PassPlan
from dynamo_sim.engine.vllm.queue import WaitingQueue
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.metrics.variance import variance, variance_of_sums


def scheduled_stats(plan: PassPlan, group: LockstepGroup[Sequence], pool: BlockPool) -> PassStats:
    """What a pass does, with lengths before its tokens."""
    stats = PassStats(used_kv_tokens=(pool.active * pool.block_size,))
    prompts: list[int] = []
    lengths = squares = 0
    for used, prompt_part, prompt_before, prompt, length in plan.work.values():
        if prompt_part > 0:
            prompts.append(prompt)
            stats.sum_prefill_tokens += used
            stats.sum_prefill_kv_tokens += prompt_before
        else:
            stats.num_decode_requests += 1
            lengths += length
            squares += length * length
    if plan.group_count:
        stats.num_decode_requests += group.count
        lengths += group.tokens
        squares += group.squared_tokens
    stats.num_prefill_requests = len(prompts)
    stats.var_prefill_length = variance(prompts)
    stats.sum_decode_kv_tokens = lengths
    stats.var_decode_kv_tokens = variance_of_sums(stats.num_decode_requests, lengths, squares)
    return stats


def stretch_stats(passes: int, group: LockstepGroup[Sequence], pool: BlockPool) -> PassStats:
    """Of a stretch that has been planned, but not carried out."""
    size = pool.block_size
    stats = PassStats(num_decode_requests=group.count, sum_decode_kv_tokens=group.tokens)
    stats.var_decode_kv_tokens = variance_of_sums(group.count, group.tokens, group.squared_tokens)
    stats.decode_kv_growth = group.count
    first = group.passes + 1
    opened = (group.openings[(first + index) % size] for index in range(passes - 1))
    stats.used_kv_tokens = [blocks * size for blocks in accumulate(opened, initial=pool.active)]
    return stats


def add_queue(stats: PassStats, queue: WaitingQueue) -> None:
    """What waits after the pass."""
    preempted = [sequence.tokens for sequence in queue.preempted()]
    stats.num_queued_decode = len(preempted)
    stats.sum_queued_decode_kv_tokens = sum(preempted)
    stats.var_queued_decode_kv_tokens = variance(preempted)
    arrivals = queue.arrivals
    stats.num_queued_prefill = arrivals.count
    stats.sum_queued_prefill_tokens = arrivals.total
    stats.var_queued_prefill_length = variance_of_sums(arrivals.count, arrivals.total, arrivals.squares)
