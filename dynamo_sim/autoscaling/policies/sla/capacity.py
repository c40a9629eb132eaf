"""What one worker can take under the targets (`spec 10, 6.5`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dynamo_sim.autoscaling.policies.sla.pass_model import PassModel

MAX_HIT_RATE = 0.95
BATCH_SIZES = 128
"""How many batch sizes are tried at most."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What the policy knows of a worker, from its engine arguments; None where there is no limit."""

    max_kv_tokens: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests as they come: mean lengths in tokens, share of the prompt that is cached, tokens a forward."""

    isl: float
    osl: float
    hit_rate: float = 0.0
    accept_length: float = 1.0

    @property
    def new_tokens(self) -> int:
        """Prompt tokens that have to be computed."""
        return math.ceil(self.isl * (1 - min(max(self.hit_rate, 0.0), MAX_HIT_RATE)))

    @property
    def context(self) -> float:
        """Mean tokens a running request holds."""
        return self.isl + self.osl / 2


def requests_per_second(
    model: PassModel, limits: EngineLimits, traffic: Traffic, ttft_ms: float, itl_ms: float
) -> float:
    """The best rate of one aggregated worker over batch sizes that meet both targets; if none does, the best anyway.

    A batch of b comes with ``ceil(b * accept * ISL' / OSL)`` prefill tokens a pass, which must fit beside it.
    """
    osl = max(1.0, traffic.osl)
    tokens = limits.max_num_batched_tokens or 1 << 30
    largest = limits.max_num_seqs or 1024
    if limits.max_kv_tokens:
        largest = min(largest, max(1, int(limits.max_kv_tokens / max(1.0, traffic.context))))
    sizes = np.unique(np.round(np.linspace(1, largest, min(largest, BATCH_SIZES)))).astype(np.int64)
    prefill = np.ceil(sizes * traffic.accept_length * traffic.new_tokens / osl)
    fits = prefill + sizes <= tokens
    if not fits.any():
        fits[0] = True
    sizes, prefill = sizes[fits], prefill[fits]
    kv = sizes * traffic.context
    seconds = np.maximum(model.seconds(prefill, sizes, kv), 1e-9)
    itl = seconds * 1000 / traffic.accept_length
    passes = max(1, math.ceil(traffic.new_tokens / tokens))
    ttft = passes * model.seconds(min(traffic.new_tokens, tokens), sizes, kv) * 1000
    rate = sizes * traffic.accept_length / (osl * seconds)
    good = (itl <= itl_ms) & (ttft <= ttft_ms)
    return float(rate[good].max()) if good.any() else float(rate.max())
