"""What is due at the present instant, and in which order (`spec 01, 5 and 6`)."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

from dynamo_sim.clock import Clock, Phase
from dynamo_sim.fleet.processes import EventOrder, StartupProcess, WorkerProcess
from dynamo_sim.serving.transfer import TransferProcess

Due = WorkerProcess | StartupProcess | TransferProcess
"""A process whose time has come."""

D = TypeVar("D", WorkerProcess, StartupProcess, TransferProcess)


class RoundStep(IntEnum):
    """The steps of a round, in their order (`spec 01, 6.1`; `spec 07, 6`)."""

    COMPLETIONS = 0
    STARTUPS = 1
    TRANSFERS = 2
    ARRIVALS = 3
    ACTIONS = 4
    PREFILL_PASSES = 5
    PASSES = 6
    REMOVALS = 7
    TICK = 8


class Instant:
    """Collects the processes whose time has come, and has the rounds of the instant run once all have reported.

    SimPy decides *when*: a process reports here at its time. The rounds decide in which *order* things happen that
    fall on one instant. As in the reference, only the head of what is due is taken.

    Args:
        clock: the virtual clock.
        settle: runs the rounds of the present instant.

    Attributes:
        round: number of the round in progress, from 1; 0 before the first.
    """

    def __init__(self, clock: Clock, settle: Callable[[], None]) -> None:
        self.round = 0
        self.is_scheduled = False
        self._clock = clock
        self._settle = settle
        self._due: list[tuple[EventOrder, Due]] = []

    def __bool__(self) -> bool:
        """Whether anything reported is still to be handled."""
        return bool(self._due)

    def report(self, order: EventOrder, process: Due) -> None:
        """The time of a process has come."""
        self.insert(order, process)
        self.wake()

    def insert(self, order: EventOrder, process: Due) -> None:
        """Note a process whose time has come, while the rounds run."""
        if self._due:
            insort(self._due, (order, process), key=_order)
        else:
            self._due.append((order, process))

    def wake(self) -> None:
        """Run the rounds: at once where nothing more can report in this instant, otherwise when everything has."""
        if not self.is_scheduled:
            if self._clock.is_settled:
                self._settle()
            else:
                self.schedule()

    def schedule(self) -> None:
        """Run the rounds after everything else of this instant has reported."""
        self.is_scheduled = True
        timer = self._clock.until(self._clock.now, Phase.SETTLE)
        assert timer.callbacks is not None
        timer.callbacks.append(lambda _: self._settle())

    def begin(self) -> None:
        """The rounds of the present instant begin."""
        self.is_scheduled = False
        self.round = 0

    def take(self, kind: type[D]) -> D | None:
        """The head of what is due, if it is of that kind; it is due no more."""
        due = self._due
        if due and isinstance(process := due[0][1], kind):
            del due[0]
            return process
        return None


def _order(item: tuple[EventOrder, Due]) -> EventOrder:
    return item[0]
