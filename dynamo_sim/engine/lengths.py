"""Sums over lengths that come and go."""

from __future__ import annotations


class Lengths:
    """Count, sum and sum of squares of lengths, in tokens."""

    __slots__ = ("count", "squares", "total")

    def __init__(self) -> None:
        self.count = self.total = self.squares = 0

    def add(self, length: int, sign: int) -> None:
        """Count a length that comes (1) or goes (-1)."""
        self.count += sign
        self.total += sign * length
        self.squares += sign * length * length
