"""Kubernetes quantities and metric values as integers in thousandths (`spec 10, 2.2`)."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, Decimal
from typing import Any

from dynamo_sim.text import shown

_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)

MAX_QUANTITY = 2**63 - 1
"""Kubernetes knows no larger one."""

_MAX_LETTERS = 60
_MAX_POWER = 4 * _MAX_LETTERS


def parse_quantity(quantity: Any) -> Decimal:
    """The exact value of a quantity such as ``"1500m"``, ``"10"``, ``"2k"``, ``"1Gi"``, ``"1e3"`` or a number.

    Raises:
        ValueError: not a quantity, or larger than Kubernetes knows.
    """
    text = _text(quantity)
    match = None if text is None else _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"not a quantity: {shown(quantity)}")
    number, exponent, suffix = match.groups()
    if exponent:
        power = max(-_MAX_POWER, min(int(exponent[1:]), _MAX_POWER))
        value = Decimal(f"{number}e{power}")
    else:
        value = Decimal(number) * _SUFFIXES[suffix or ""]
    if abs(value) > MAX_QUANTITY:
        raise ValueError(f"too large a quantity: {shown(quantity)}; the largest is 2^63 - 1")
    return value


def _text(quantity: Any) -> str | None:
    """The text of what may be a quantity, or None."""
    if isinstance(quantity, bool) or not isinstance(quantity, str | int | float | Decimal):
        return None
    if isinstance(quantity, int):
        quantity = max(-MAX_QUANTITY - 2, min(quantity, MAX_QUANTITY + 1))
    text = str(quantity).strip()
    return text if len(text) <= _MAX_LETTERS else None


def quantity_milli(quantity: Any) -> int:
    """A quantity in thousandths; fractions of a thousandth are rounded up.

    Raises:
        ValueError: not a quantity.
    """
    return int((parse_quantity(quantity) * 1000).to_integral_value(ROUND_CEILING))


def value_milli(value: float) -> int:
    """A metric's value in thousandths: rounded to three decimals; negative, NaN and infinite values are 0."""
    if not math.isfinite(value) or value <= 0:
        return 0
    return int(Decimal(f"{value:.3f}") * 1000)
