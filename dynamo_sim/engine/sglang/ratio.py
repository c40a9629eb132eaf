"""How much of the outputs to come an SGLang-style worker sets aside (`spec 05, 2 and 10`)."""

from __future__ import annotations


class NewTokenRatio:
    """The share of the outputs to come that is reserved: falls every pass, starts anew after a retraction.

    Args:
        conservativeness: scales the share; neither its sign nor its size is limited.
    """

    __slots__ = ("_initial", "_lowest", "_step", "value")

    def __init__(self, conservativeness: float) -> None:
        self._initial = 0.7 * conservativeness
        self._lowest = self._initial * 0.14
        self._step = (self._initial - self._lowest) / 600.0
        self.value = self._initial

    def reset(self) -> None:
        """Start anew."""
        self.value = self._initial

    def below(self, value: float) -> float:
        """What ``value`` is one pass later."""
        lower = value - self._step
        return lower if lower > self._lowest else self._lowest

    def lower(self, passes: int) -> None:
        """Let that many passes end."""
        value, lowest, step = self.value, self._lowest, self._step
        for _ in range(passes):
            lower = value - step
            if lower <= lowest:
                lower = lowest
            if lower == value:
                break
            value = lower
        self.value = value
