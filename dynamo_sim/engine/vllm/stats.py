"""The forward-pass metrics of a vLLM-style worker (`spec 02, 11`)."""

from __future__ import annotations

from dynamo_sim.engine.lockstep import LockstepGroup
from dynamo_sim.engine.pass_stats import PassStats
from dynamo_sim.engine.vllm.pass_plan import PassPlan
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.kv.block_pool import BlockPool


def scheduled_stats(plan: PassPlan, group: LockstepGroup[Sequence], pool: BlockPool) -> PassStats:
    """What a pass does, with lengths before its tokens."""
    stats = PassStats()
    stats.first_used_tokens = pool.active * pool.block_size
    if plan.group_count:
        stats.num_decode_requests = group.count
        stats.sum_decode_kv_tokens = group.tokens
        stats.decode_squares = group.squared_tokens
    for used, prompt_part, prompt_before, prompt, length in plan.work.values():
        if prompt_part > 0:
            stats.num_prefill_requests += 1
            stats.prefill_prompt_tokens += prompt
            stats.prefill_squares += prompt * prompt
            stats.sum_prefill_tokens += used
            stats.sum_prefill_kv_tokens += prompt_before
        else:
            stats.num_decode_requests += 1
            stats.sum_decode_kv_tokens += length
            stats.decode_squares += length * length
    return stats


def scheduled_numbers(plan: PassPlan, group: LockstepGroup[Sequence]) -> tuple[int, int, int, int, int]:
    """What a pass does, as a `PassLog` notes it: its prefill and decode numbers, with lengths before its tokens."""
    prefill_tokens = decode_tokens = 0
    decode_requests = plan.group_count
    if decode_requests:
        decode_tokens = group.tokens
    for used, prompt_part, _, _, length in plan.work.values():
        if prompt_part > 0:
            prefill_tokens += used
        else:
            decode_requests += 1
            decode_tokens += length
    return plan.prefill_count, prefill_tokens, plan.prefill_starts, decode_requests, decode_tokens


def stretch_stats(passes: int, group: LockstepGroup[Sequence], pool: BlockPool) -> PassStats:
    """Of a stretch that has been planned, but not carried out."""
    stats = PassStats()
    stats.num_decode_requests = stats.decode_kv_growth = group.count
    stats.sum_decode_kv_tokens = group.tokens
    stats.decode_squares = group.squared_tokens
    stats.block_tokens = pool.block_size
    stats.first_used_tokens = pool.active * pool.block_size
    stats.opened_blocks = group.openings_of(passes - 1)
    return stats
