"""Transfers of one kind that wait for their turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

B = TypeVar("B")


class CopyQueue(Generic[B]):
    """First come first served, with a limit on how many are in progress at once.

    Args:
        limit: most of them at once.
        start: takes what a batch needs and begins its transfer; False where it cannot go, and is given up.

    Attributes:
        waiting: those that have not begun.
        in_progress: how many have begun and not landed; whoever finds one landed subtracts it.
    """

    __slots__ = ("_limit", "_start", "in_progress", "waiting")

    def __init__(self, limit: int, start: Callable[[B], bool]) -> None:
        self._limit = limit
        self._start = start
        self.waiting: deque[B] = deque()
        self.in_progress = 0

    def start_next(self) -> None:
        """Start what may start now."""
        while self.waiting and self.in_progress < self._limit:
            if self._start(self.waiting.popleft()):
                self.in_progress += 1

    def behind_next(self) -> Iterator[B]:
        """Those that wait behind the one that starts next (`spec 11, 3.2`)."""
        return islice(self.waiting, 1, None)
