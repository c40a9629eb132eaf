"""Figures as JSON can have them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def finite(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The same figures with null for NaN and infinity, which JSON does not have."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in figures.items()
    }
