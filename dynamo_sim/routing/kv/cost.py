"""What it costs to send a request to each worker, and the choice among the costs (`spec 06, 5`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.routing.kv.overlap_index import Ints

if TYPE_CHECKING:
    from dynamo_sim.scenario.routing import KvRouting

Floats = NDArray[np.float64]


def costs(
    config: KvRouting,
    input_tokens: int,
    block_tokens: int,
    prefill_tokens: Ints,
    overlap_blocks: Ints,
    active_blocks: Ints,
    shared_blocks: Ints,
) -> Floats:
    """Costs in blocks, one for each eligible worker (`spec 06, 5`).

    The order of the operations is the reference's: another order changes the last bits, and so the ties.

    Args:
        config: the router's configuration.
        prefill_tokens: tokens booked on each worker (`A`), shape (workers,), like the three that follow.
        overlap_blocks: leading blocks that each worker held when the request arrived (`O`).
        active_blocks: distinct active blocks of each worker (`D`).
        shared_blocks: leading blocks of the prompt that are active on each worker (`S`).
    """
    if config.router_track_prefill_tokens:
        size = float(block_tokens)
        # Cached tokens are a part of the prompt: what is cached and what is not add up to all of it.
        load = (prefill_tokens + input_tokens) / size
        if config.credit:
            credit: Floats | float = config.credit
            if config.overlap_score_credit_decay > 0:
                excess = (
                    (prefill_tokens - prefill_tokens.min()) / size / float(-(-input_tokens // block_tokens))
                )
                credit = credit * (1.0 / (1.0 + config.overlap_score_credit_decay * excess))
            load = np.maximum(load - credit * overlap_blocks, 0.0)
        load = config.load_scale * load
    else:
        load = np.zeros(len(prefill_tokens))
    if not config.router_track_active_blocks:
        return load
    load += active_blocks + (input_tokens // block_tokens - shared_blocks)
    return load


def choose(
    costs: Floats,
    temperature: float,
    random: np.random.Generator,
    tie_break: Literal["random", "lowest_id"] = "random",
) -> int:
    """The place of the chosen worker among the costs (`spec 06, 5`).

    Args:
        temperature: 0 takes the smallest cost; above 0 the worst worker has `exp(-1 / temperature)` times the weight
            of the best.
        random: where ties and temperature are drawn from; a choice without either draws nothing.
        tie_break: who is taken of several workers with the smallest cost, at temperature 0.
    """
    if len(costs) == 1:
        return 0
    if temperature == 0:
        first = int(costs.argmin())
        if tie_break == "lowest_id":
            return first
        best = np.flatnonzero(costs == costs[first])
        return first if len(best) == 1 else int(best[random.integers(len(best))])
    lowest, highest = costs.min(), costs.max()
    if lowest == highest:
        return int(random.integers(len(costs)))
    scale = -1.0 / ((highest - lowest) * temperature)
    weights = np.exp(costs * scale - lowest * scale)
    cumulated = np.add.accumulate(weights / weights.sum())
    # The last sum may be less than 1 by rounding.
    return min(int(np.searchsorted(cumulated, random.random())), len(costs) - 1)
