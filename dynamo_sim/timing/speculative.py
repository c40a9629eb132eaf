"""How many tokens a step of speculative decoding yields: the reproducible sampler of `spec 04, 6`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dynamo_sim.timing.chacha import chacha12_u64

_TWO_64 = 1 << 64


class BurstSampler:
    """The draws of one worker (`spec 04, 6.3`); the stream is never reset.

    Args:
        rates: acceptance rate of each draft, 0 to 1, given that all before it were accepted.
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
