"""Reading decimal numbers the way the reference does, which is not always the nearest float."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

MAX_SIGNIFICAND = (1 << 64) - 1
MAX_DIGITS = 20
"""Digits of `MAX_SIGNIFICAND`; fewer always fit."""

POWERS = tuple(float(f"1e{exponent}") for exponent in range(309))


def read_decimal(text: str) -> float:
    """The float of a JSON number: its leading digits as a whole number, times or divided by a power of ten.

    Digits that do not fit into 64 bits are dropped. Either step rounds, so that numbers of more than 15 digits
    can come out beside the nearest float. Infinite where the number is too large.
    """
    digits, _, power = text.lower().partition("e")
    whole, _, fraction = digits.partition(".")
    if len(digits) < MAX_DIGITS and not power:
        return float(int(whole + fraction)) / POWERS[len(fraction)]
    sign = -1.0 if whole.startswith("-") else 1.0
    significant = (whole.removeprefix("-") + fraction).lstrip("0")
    fitting = significant[:MAX_DIGITS]
    if fitting and int(fitting) > MAX_SIGNIFICAND:
        fitting = fitting[:-1]
    exponent = int(power or 0) - len(fraction) + len(significant) - len(fitting)
    return sign * _scaled(float(fitting or 0), exponent)


def _scaled(value: float, exponent: int) -> float:
    last = len(POWERS) - 1
    while exponent < -last and value:
        value /= POWERS[last]
        exponent += last
    if not value:
        return 0.0
    if exponent > last:
        return inf
    return value * POWERS[exponent] if exponent >= 0 else value / POWERS[-exponent]


def as_written(value: Any) -> Any:
    """A record given in memory as it reads once it has been written to a file: its floats are read again.

    Raises:
        ValueError: it has a number that JSON cannot write.
    """
    if type(value) is float:
        if not isfinite(value):
            raise ValueError(f"{value} is not a JSON number")
        return read_decimal(repr(value))
    if isinstance(value, dict):
        return {key: as_written(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and not set(map(type, value)) <= {int, str}:
        return [as_written(item) for item in value]
    return value
