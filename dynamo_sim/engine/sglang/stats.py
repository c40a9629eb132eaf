"""Forward-pass metrics of an SGLang-style worker (`spec 05, 14`)."""

from __future__ import annotations

from dynamo_sim.engine.pass_stats import PassStats
from dynamo_sim.engine.sglang.admission import Chunk
from dynamo_sim.engine.sglang.batch import RunningBatch


def scheduled_stats(chunks: list[Chunk], batch: RunningBatch) -> PassStats:
    """What a pass takes in and what it decodes, before anybody is retracted for it.

    Tokens of the batch that were cached count among ``sum_prefill_tokens``.
    """
    stats = PassStats()
    stats.num_decode_requests = len(batch.members)
    stats.sum_decode_kv_tokens = batch.tokens
    stats.decode_squares = batch.squared_tokens
    for sequence, tokens, reused, _ in chunks:
        prompt = sequence.prompt_tokens
        stats.num_prefill_requests += 1
        stats.prefill_prompt_tokens += prompt
        stats.prefill_squares += prompt * prompt
        stats.sum_prefill_tokens += tokens
        stats.sum_prefill_kv_tokens += reused
    return stats


def scheduled_numbers(chunks: list[Chunk], batch: RunningBatch) -> tuple[int, int, int, int, int]:
    """The same as a `PassLog` notes it: its prefill and decode numbers."""
    prefill_tokens = prefill_kv_tokens = 0
    for _, tokens, reused, _ in chunks:
        prefill_tokens += tokens
        prefill_kv_tokens += reused
    return len(chunks), prefill_tokens, prefill_kv_tokens, len(batch.members), batch.tokens


def stretch_stats(passes: int, batch: RunningBatch, used_tokens: int) -> PassStats:
    """Of a stretch that has been planned, but not carried out.

    Args:
        used_tokens: slots in use before it; negative when slots were given back twice (`spec 05, 12`).
    """
    stats = scheduled_stats([], batch)
    stats.decode_kv_growth = batch.growing
    stats.first_used_tokens = used_tokens
    stats.opened_blocks = [batch.growing] * (passes - 1)
    return stats
