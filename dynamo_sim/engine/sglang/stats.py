"""Forward-pass metrics of an SGLang-style worker (`spec 05, 14`)."""

from __future__ import annotations

from dynamo_sim.engine.sglang.admission import Chunk
from dynamo_sim.engine.sglang.batch import RunningBatch
from dynamo_sim.engine.sglang.queue import WaitingQueue
from dynamo_sim.engine.step import PassStats
from dynamo_sim.metrics.variance import variance, variance_of_sums


def scheduled_stats(chunks: list[Chunk], batch: RunningBatch) -> PassStats:
    """What a pass takes in and what it decodes, before anybody is retracted for it.

    Tokens of the batch that were cached count among ``sum_prefill_tokens``.
    """
    running = len(batch.members)
    return PassStats(
        num_prefill_requests=len(chunks),
        sum_prefill_tokens=sum(chunk.tokens for chunk in chunks),
        var_prefill_length=variance(chunk.sequence.prompt_tokens for chunk in chunks),
        sum_prefill_kv_tokens=sum(chunk.reused for chunk in chunks),
        num_decode_requests=running,
        sum_decode_kv_tokens=batch.tokens,
        var_decode_kv_tokens=variance_of_sums(running, batch.tokens, batch.squared_tokens),
    )


def stretch_stats(passes: int, batch: RunningBatch, used_tokens: int) -> PassStats:
    """Of a stretch that has been planned, but not carried out.

    Args:
        used_tokens: slots in use before it; negative when slots were given back twice (`spec 05, 12`).
    """
    stats = scheduled_stats([], batch)
    stats.decode_kv_growth = batch.growing
    stats.used_kv_tokens = [max(0, used_tokens + index * batch.growing) for index in range(passes)]
    return stats


def add_queue(stats: PassStats, queue: WaitingQueue) -> None:
    """What waits after the pass; a prompt computed in part counts with its whole length."""
    arrivals, returned = queue.arrivals, queue.returned
    stats.num_queued_prefill = arrivals.count
    stats.sum_queued_prefill_tokens = arrivals.total
    stats.var_queued_prefill_length = variance_of_sums(arrivals.count, arrivals.total, arrivals.squares)
    stats.num_queued_decode = returned.count
    stats.sum_queued_decode_kv_tokens = returned.total
    stats.var_queued_decode_kv_tokens = variance_of_sums(returned.count, returned.total, returned.squares)
