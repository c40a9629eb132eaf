"""Requests in a list: open loop by time, or closed loop with a cap on requests (`spec 08, 2`: A, E, F)."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import inf

from dynamo_sim.workload.request import Request
from dynamo_sim.workload.source import WorkloadSource
from dynamo_sim.workload.turns import Turns


class OpenList(WorkloadSource):
    """Single requests at known times, in order of time; rows of one time keep their order.

    Args:
        turns: content of the rows.
        arrivals_ms: when each row arrives; need not be sorted.
        rows: the rows that ``arrivals_ms`` is about; all of them by default.
    """

    hears_endings = False

    def __init__(self, turns: Turns, arrivals_ms: Iterable[float], rows: Sequence[int] | None = None) -> None:
        super().__init__()
        times = array("d", arrivals_ms)
        order: Sequence[int] = range(len(times)) if rows is None else rows
        if any(map(float.__gt__, times, times[1:])):
            by_time = sorted(range(len(times)), key=times.__getitem__)
            times, order = (
                array("d", map(times.__getitem__, by_time)),
                array("q", (order[i] for i in by_time)),
            )
        times.append(inf)
        self._turns = turns
        self._arrivals = times
        self._rows = order
        self._next = 0
        self.total = len(times) - 1

    def next_ms(self) -> float | None:
        """When the next request arrives."""
        at_ms = self._arrivals[self._next]
        return None if at_ms == inf else at_ms

    def take_due(self, now_ms: float, in_flight: int) -> list[Request]:
        """The requests that arrived up to now, stamped with the time they were due."""
        arrivals, first = self._arrivals, self._next
        if arrivals[first] > now_ms:
            return []
        last = self._next = bisect_right(arrivals, now_ms, first, self.total)
        return list(map(self._turns.request, self._rows[first:last], arrivals[first:last]))

    def exhausted(self) -> bool:
        """Whether all were handed out."""
        return self._next == self.total


class CappedList(WorkloadSource):
    """Requests that arrive one after another whenever fewer than ``cap`` are in the system (`spec 08, 9`).

    Their arrival is stamped with the instant they are taken.
    """

    hears_endings = True

    def __init__(self, turns: Turns, cap: int) -> None:
        super().__init__()
        self._turns = turns
        self._cap = cap
        self._next = 0
        self.total = len(turns)

    def take_due(self, now_ms: float, in_flight: int) -> list[Request]:
        """As many requests as the cap allows."""
        first = self._next
        self._next = min(self.total, first + max(0, self._cap - in_flight))
        return [self._turns.request(row, now_ms) for row in range(first, self._next)]

    def exhausted(self) -> bool:
        """Whether all were handed out."""
        return self._next == self.total
