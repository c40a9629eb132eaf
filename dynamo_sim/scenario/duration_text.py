"""Durations as people write them, ``500ms`` or ``1h30m``, for keys whose values are numbers of one unit."""

from __future__ import annotations

import re
from decimal import Decimal

UNIT_NAMES = {"ms": "milliseconds", "s": "seconds"}

MS = {"ms": 1, "s": 1_000, "sec": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Milliseconds of each unit that a text may have."""

_PART = r"(\d+(?:\.\d+)?)\s*(ms|sec|s|min|m|h|d)\s*"


def unit_of(key: str) -> str | None:
    """The unit of a key of time: ``ms`` for ``at_ms``, ``s`` for ``drain_grace_s``; None for any other key."""
    if key == "startup_time":  # a name of the reference, without its unit
        return "s"
    last = key.rpartition("_")[2]
    return last if last in UNIT_NAMES and last != key else None


def duration_in(text: str, unit: str) -> float | None:
    """A duration as a number of ``unit``: ``duration_in("2m", "s")`` is 120; None where it is none."""
    if not re.fullmatch(f"(?:{_PART})+", text.strip()):
        return None
    total_ms = sum(Decimal(amount) * MS[name] for amount, name in re.findall(_PART, text))
    return float(total_ms / MS[unit])
