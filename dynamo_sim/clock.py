"""Virtual time in milliseconds, with events at absolute times."""

from __future__ import annotations

from collections.abc import Generator
from enum import IntEnum
from heapq import heappop, heappush

import simpy
from simpy.events import NORMAL, PENDING, Event


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

    def again(self) -> Timer:
        """This timer, which has ended, as a new one that is not armed."""
        self.callbacks = []
        self._value = PENDING
        return self

    def arm(self, at_ms: float, phase: int = NORMAL) -> None:
        """End at the absolute time ``at_ms``."""
        self._ok = True
        self._value = None
        clock = self.env
        heappush(clock._queue, (at_ms, phase, next(clock._eid), self))  # type: ignore[misc]

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

    Attributes:
        now: the present virtual time in ms. A plain attribute, because it is read at everything that happens.
    """

    now: float = 0.0

    def __init__(self) -> None:
        super().__init__(0.0)

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
        """Start a process."""
        return self.process(generator)

    def start_at_once(self, generator: Generator[Event, None, None]) -> simpy.Process:
        """Start a process and run it to its first wait before this returns.

        SimPy would let it begin in an event of the present instant, which then would not be settled.
        """
        queue, self._queue = self._queue, []
        process = self.process(generator)
        ((_, _, _, beginning),) = self._queue
        self._queue = queue
        callbacks, beginning.callbacks = beginning.callbacks, None  # type: ignore[assignment]
        for callback in callbacks:
            callback(beginning)
        return process

    def run_dry(self) -> None:
        """Run until nothing is scheduled or somebody stops the clock.

        This is SimPy's `step` in a loop, written out because it runs for everything that happens, and with one
        difference: a process that fails ends it with the very exception (SimPy would build a new one).

        Raises:
            Exception: what a process failed with.
        """
        queue = self._queue
        while queue:
            self._now, _, _, event = heappop(queue)
            self.now = self._now
            callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
            for callback in callbacks:
                callback(event)
            if not event._ok and not hasattr(event, "_defused"):
                raise event._value

    def stop(self) -> None:
        """Forget everything that is scheduled."""
        self._queue.clear()
