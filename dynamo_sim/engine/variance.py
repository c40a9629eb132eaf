"""Population variance of whole numbers."""

from __future__ import annotations

from collections.abc import Iterable


def variance(values: Iterable[int]) -> float:
    """Population variance, exact before the last division; 0.0 for none."""
    count = total = squares = 0
    for value in values:
        count += 1
        total += value
        squares += value * value
    return variance_of_sums(count, total, squares)


def variance_of_sums(count: int, total: int, squares: int) -> float:
    """Population variance from the number of values, their sum and the sum of their squares."""
    return (count * squares - total * total) / (count * count) if count else 0.0
