"""The built-in timing: polynomials in the prompt tokens and in the share of the KV pool in use."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_sim.timing.durations import pass_ms


class PolynomialTiming:
    """Pass durations without measured data (`spec 04, 2 and 3`); implements `PassTiming`.

    Both durations depend on one integer only, so each is worked out once and then looked up.

    Args:
        total_kv_tokens: KV pool of the worker in tokens, blocks times block size, > 0.
        speedup_ratio: divides both durations; 0 is no scaling.
        decode_speedup_ratio: divides decode on top of that; 0 takes all scaling off decode.
    """

    context_matters = False

    def __init__(
        self, total_kv_tokens: int, speedup_ratio: float = 1.0, decode_speedup_ratio: float = 1.0
    ) -> None:
        self.total_kv_tokens = total_kv_tokens
        self.prefill_ratio = speedup_ratio
        self.decode_ratio = speedup_ratio * decode_speedup_ratio
        self._prefill_ms: dict[int, float] = {}
        self._decode_ms: dict[int, float] = {}

    def warnings(self) -> Iterator[str]:
        """None: the polynomial holds everywhere."""
        return iter(())

    def prefill_ms(self, batch: int, new_tokens: int) -> float:
        """Duration of a prefill of ``batch * new_tokens`` prompt tokens, in ms."""
        tokens = batch * new_tokens
        known = self._prefill_ms.get(tokens)
        if known is None:
            known = self._prefill_ms[tokens] = pass_ms(_prefill_model_ms(float(tokens)), self.prefill_ratio)
        return known

    def decode_ms(self, kv_tokens: int, batch: int, context_tokens: int) -> float:
        """Duration of a decode step with ``kv_tokens`` of the pool in use, in ms; the rest plays no part."""
        known = self._decode_ms.get(kv_tokens)
        if known is None:
            usage = kv_tokens / self.total_kv_tokens
            ms = max(((-25.74 * (usage * usage)) + (54.01 * usage)) + 5.74, 1.0)
            known = self._decode_ms[kv_tokens] = pass_ms(ms, self.decode_ratio)
        return known


def _prefill_model_ms(tokens: float) -> float:
    return max(((4.209989e-07 * (tokens * tokens)) + (1.518344e-02 * tokens)) + 1.650142e01, 0.0)
