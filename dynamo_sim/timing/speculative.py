"""How many tokens a step of speculative decoding yields: the reproducible sampler of `spec 04, 6`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dynamo_sim.errors import ScenarioError
from dynamo_sim.timing.chacha import chacha12_u64

MAX_DRAFTS = 5
DEFAULT_RATES = (0.85, 0.3, 0.0, 0.0, 0.0)

_TWO_64 = 1 << 64


def acceptance_rates(text: str | None, drafts: int) -> tuple[float, ...]:
    """Read comma separated values, cut or padded with 0 to ``drafts`` of them (`spec 04, 6.1`).

    Rate ``i`` is the probability that draft ``i`` is accepted given that all before it were. Without text the
    defaults of the reference apply.

    Raises:
        ScenarioError: a value, also one beyond ``drafts``, is not a number between 0 and 1.
    """
    rates = list(DEFAULT_RATES)
    if text is not None and text.strip():
        rates = [_rate(item.strip()) for item in text.split(",")]
    return tuple((rates + [0.0] * drafts)[:drafts])


def _rate(item: str) -> float:
    try:
        rate = float(item)
    except ValueError:
        rate = math.nan
    if not 0.0 <= rate <= 1.0:
        raise ScenarioError(f"acceptance rates must be numbers from 0 to 1 separated by commas, not {item!r}")
    return rate


class BurstSampler:
    """The draws of one worker (`spec 04, 6.3`); the stream is never reset.

    Args:
        rates: acceptance rate of each draft, 0 to 1 (`acceptance_rates`).
        seed: ``aic_mtp_seed``, the same for all workers.
        worker_id: stable id of the worker in its fleet.
    """

    def __init__(self, rates: Sequence[float], seed: int, worker_id: int) -> None:
        self.rates = tuple(rates)
        self._stream: Iterator[int] = chacha12_u64((seed + worker_id) % _TWO_64)
        # A draft that is always accepted takes nothing from the stream: None.
        self._thresholds = tuple(None if rate == 1.0 else int(rate * 2.0**64) for rate in self.rates)

    def burst(self, left: int) -> int:
        """Tokens of one request in one step, 1 to N + 1 and not above ``left`` >= 0, those still to come."""
        if left == 0:
            return 0
        tokens = 1
        for threshold in self._thresholds:
            if threshold is not None and next(self._stream) >= threshold:
                break
            tokens += 1
        return min(tokens, left)
