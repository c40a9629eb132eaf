"""Sums over lengths that come and go."""

from __future__ import annotations


class Lengths:
    """Count, sum and sum of squares of lengths, in tokens."""

    __slots__ = ("count", "squares", "total")

    def __init__(self) -> None:
        self.count = self.total = self.squares = 0

    def add(self, length: int) -> None:
        """Count a length that comes."""
        self.count += 1
        self.total += length
        self.squares += length * length

    def remove(self, length: int) -> None:
        """Count a length that goes."""
        self.count -= 1
        self.total -= length
        self.squares -= length * length
