"""Forward-pass metrics of an SGLang-style worker (`spec 05, 14`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_sim.engine.sglang.admission import Piece
from dynamo_sim.engine.step import PassStats
from dynamo_sim.metrics.variance import variance, variance_of_sums

if TYPE_CHECKING:
    from dynamo_sim.engine.sglang.scheduler import SglangScheduler


def scheduled_stats(engine: SglangScheduler, pieces: list[Piece]) -> PassStats:
    """What a pass takes in and what it decodes, before anybody is retracted for it.

    Tokens of the batch that were cached count among ``sum_prefill_tokens``.
    """
    batch = engine.batch
    return PassStats(
        num_prefill_requests=len(pieces),
        sum_prefill_tokens=sum(piece.tokens for piece in pieces),
        var_prefill_length=variance(piece.sequence.prompt_tokens for piece in pieces),
        sum_prefill_kv_tokens=sum(piece.reused for piece in pieces),
        num_decode_requests=len(batch),
        sum_decode_kv_tokens=batch.tokens,
        var_decode_kv_tokens=variance_of_sums(len(batch), batch.tokens, batch.squared_tokens),
        used_kv_tokens=(engine.used_kv_tokens,),
    )


def stretch_stats(engine: SglangScheduler, passes: int) -> PassStats:
    """Of a stretch that has been planned, but not carried out."""
    growing = engine.batch.growing
    used = engine.pool_tokens - engine.cache.available
    stats = scheduled_stats(engine, [])
    stats.decode_kv_growth = growing
    stats.used_kv_tokens = [max(0, used + index * growing) for index in range(passes)]
    add_queue(engine, stats)
    return stats


def add_queue(engine: SglangScheduler, stats: PassStats) -> None:
    """What waits after the pass; a prompt computed in part counts with its whole length."""
    fresh, returned = engine.queue.fresh, engine.queue.returned
    stats.num_queued_prefill = fresh.count
    stats.sum_queued_prefill_tokens = fresh.total
    stats.var_queued_prefill_length = variance_of_sums(fresh.count, fresh.total, fresh.squares)
    stats.num_queued_decode = returned.count
    stats.sum_queued_decode_kv_tokens = returned.total
    stats.var_queued_decode_kv_tokens = variance_of_sums(returned.count, returned.total, returned.squares)
