"""Virtual time in milliseconds, with events at absolute times."""

from __future__ import annotations

from collections.abc import Generator
from enum import IntEnum
from heapq import heappush

import simpy
from simpy.events import NORMAL, Event


class Phase(IntEnum):
    """The order of an instant: among events of one time, those of a lower phase happen first."""

    EVENT = NORMAL
    """Passes that end, startups that are over, arrivals and evaluations that are due: each reports itself."""
    SETTLE = 9
    """The rounds that handle what was reported (`spec 01, 6`)."""
    CAP = 10
    """The time cap of the run: what falls on the cap itself has been handled."""
    SCRAPE = 11
    """Metrics are scraped from the settled fleet."""
    KILL = 12
    """A draining worker whose grace period is over is killed."""


class Timer(Event):
    """A timeout whose end is set after a process has begun to wait for it, and may be moved to an earlier time."""

    def arm(self, at_ms: float, phase: int = NORMAL) -> None:
        """End at the absolute time ``at_ms``."""
        self._ok = True
        self._value = None
        clock = self.env
        assert isinstance(clock, Clock)
        entry: tuple[float, int, int, Event] = (at_ms, phase, next(clock._eid), self)
        heappush(clock._queue, entry)  # type: ignore[misc]

    def disarmed(self) -> Timer:
        """A timer that is not armed, for whoever waits for this one; this one then wakes nobody."""
        successor = Timer(self.env)
        successor.callbacks, self.callbacks = self.callbacks, []
        return successor

    def moved_to(self, at_ms: float, phase: int = NORMAL) -> Timer:
        """A timer that wakes whoever waits for this one at ``at_ms`` instead; this one then wakes nobody."""
        successor = self.disarmed()
        successor.arm(at_ms, phase)
        return successor


class Clock(simpy.Environment):
    """A SimPy environment whose unit is the millisecond.

    Deadlines are absolute: they are stored and scheduled as they are, never as ``now + (deadline - now)``, so what
    happens at the same float happens in one instant.
    """

    def __init__(self) -> None:
        super().__init__(0.0)
        self._failure: Exception | None = None

    def timer(self) -> Timer:
        """A timer that is not armed yet."""
        return Timer(self)

    def until(self, at_ms: float, phase: int = NORMAL) -> Timer:
        """A timeout that ends at the absolute time ``at_ms``."""
        timer = Timer(self)
        timer.arm(at_ms, phase)
        return timer

    @property
    def is_settled(self) -> bool:
        """Whether nothing is scheduled in the present instant that comes before its rounds or belongs to them.

        Scrapes, kills and the cap come after them and do not count.
        """
        queue = self._queue
        return not queue or queue[0][0] > self._now or queue[0][1] > Phase.SETTLE

    def start(self, generator: Generator[Event, None, None]) -> simpy.Process:
        """Start a process whose failure ends `run_dry` with the very exception (SimPy would build a new one)."""
        return self.process(self._watched(generator))

    def _watched(self, generator: Generator[Event, None, None]) -> Generator[Event, None, None]:
        try:
            yield from generator
        except Exception as error:
            self._failure = error
            self.stop()

    def run_dry(self) -> None:
        """Run until nothing is scheduled or somebody stops the clock.

        Raises:
            Exception: what a process begun with `start` failed with.
        """
        queue, step = self._queue, self.step
        while queue:
            step()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Forget everything that is scheduled."""
        self._queue.clear()
