"""What it costs to send a request to each worker, and the choice among the costs (`spec 06, 5`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CostWeights:
    """The fields of the router's configuration that costs depend on, with the reference's names and defaults."""

    overlap_score_credit: float = 1.0
    overlap_score_credit_decay: float = 0.0
    prefill_load_scale: float = 1.0
    router_track_prefill_tokens: bool = True
    router_track_active_blocks: bool = True


def costs(
    weights: CostWeights,
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
        prefill_tokens: tokens booked on each worker (`A`), shape (workers,), like the three that follow.
        overlap_blocks: leading blocks that each worker held when the request arrived (`O`).
        active_blocks: distinct active blocks of each worker (`D`).
        shared_blocks: leading blocks of the prompt that are active on each worker (`S`).
    """
    overlap = overlap_blocks.astype(np.float64)
    size = float(block_tokens)
    if weights.router_track_prefill_tokens:
        cached_tokens = overlap_blocks * block_tokens
        raw = (prefill_tokens + np.maximum(input_tokens - cached_tokens, 0) + cached_tokens) / size
    else:
        raw = np.zeros(len(overlap))
    if weights.router_track_prefill_tokens and weights.overlap_score_credit_decay > 0:
        excess = (prefill_tokens - prefill_tokens.min()) / size / float(-(-input_tokens // block_tokens))
        decay = 1.0 / (1.0 + weights.overlap_score_credit_decay * excess)
        credit = (weights.overlap_score_credit * decay) * overlap
    else:
        credit = weights.overlap_score_credit * overlap
    load = weights.prefill_load_scale * np.maximum(raw - credit, 0.0)
    if not weights.router_track_active_blocks:
        return load + 0.0
    return load + (active_blocks + (input_tokens // block_tokens - shared_blocks)).astype(np.float64)


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
    lowest, highest = costs.min(), costs.max()
    if temperature == 0:
        best = np.flatnonzero(costs == lowest)
        if len(best) == 1 or tie_break == "lowest_id":
            return int(best[0])
        return int(best[random.integers(len(best))])
    if len(costs) == 1:
        return 0
    if lowest == highest:
        return int(random.integers(len(costs)))
    scale = -1.0 / ((highest - lowest) * temperature)
    weights = np.exp(costs * scale - lowest * scale)
    cumulated = np.add.accumulate(weights / weights.sum())
    # The last sum may be less than 1 by rounding.
    return min(int(np.searchsorted(cumulated, random.random())), len(costs) - 1)
