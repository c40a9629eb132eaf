"""GPU budgets: a band every target is clamped into (`spec 10, 6.6`)."""

from __future__ import annotations

import math


def clamp_to_budget(
    replicas: int, gpus_per_worker: int, min_gpus: int, max_gpus: int, min_endpoint: int = 1
) -> int:
    """Workers of one pool after the budget.

    Args:
        replicas: desired, before the budget.
        gpus_per_worker: GPUs one worker occupies; 0 or less switches the budget off.
        min_gpus, max_gpus: the band; a negative bound is off.
        min_endpoint: smallest pool. When even that exceeds ``max_gpus`` the answer is 0.
    """
    gpus = gpus_per_worker
    if gpus <= 0:
        return replicas
    total = replicas * gpus
    if 0 <= max_gpus < total:
        return 0 if min_endpoint * gpus > max_gpus else max(min_endpoint, max_gpus // gpus)
    slack = gpus if min_gpus >= 0 and max_gpus >= 0 else 0
    if min_gpus >= 0 and total < min_gpus - slack:
        return max(min_endpoint, math.ceil(min_gpus / gpus))
    return replicas


def clamp_pair_to_budget(
    prefill: int,
    decode: int,
    gpus_per_prefill: int,
    gpus_per_decode: int,
    min_gpus: int,
    max_gpus: int,
    min_endpoint: int = 1,
) -> tuple[int, int]:
    """Workers of two pools that share one budget; arguments as in `clamp_to_budget`."""
    gp, gd, m = gpus_per_prefill, gpus_per_decode, min_endpoint
    if gp <= 0 or gd <= 0:
        return prefill, decode
    total = prefill * gp + decode * gd
    if 0 <= max_gpus < total:
        if m * (gp + gd) > max_gpus:
            return 0, 0
        share = max_gpus / total
        new_prefill = max(m, min((max_gpus - m * gd) // gp, math.floor(prefill * share)))
        return new_prefill, max(m, (max_gpus - new_prefill * gp) // gd)
    slack = max(gp, gd) if min_gpus >= 0 and max_gpus >= 0 else 0
    if min_gpus >= 0 and total < min_gpus - slack:
        if total <= 0:
            new_prefill = max(m, math.ceil(min_gpus / 2 / gp))
        else:
            new_prefill = max(m, math.ceil(prefill * (min_gpus / total)))
        new_decode = max(m, math.ceil(max(0, min_gpus - new_prefill * gp) / gd))
        if max_gpus >= 0 and new_prefill * gp + new_decode * gd > max_gpus:
            return prefill, decode
        return new_prefill, new_decode
    return prefill, decode
