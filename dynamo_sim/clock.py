"""Virtual time in milliseconds, with events at absolute times."""

from __future__ import annotations

from collections.abc import Generator
from heapq import heappush

import simpy
from simpy.events import NORMAL, Event

LAST = 9
"""Priority of what happens after everything else of its instant."""


class Timer(Event):
    """A timeout whose end is set after a process has begun to wait for it, and may be moved to an earlier time."""

    def arm(self, at_ms: float, priority: int = NORMAL) -> None:
        """End at the absolute time ``at_ms``."""
        self._ok = True
        self._value = None
        clock = self.env
        assert isinstance(clock, Clock)
        entry: tuple[float, int, int, Event] = (at_ms, priority, next(clock._eid), self)
        heappush(clock._queue, entry)  # type: ignore[misc]

    def disarmed(self) -> Timer:
        """A timer that is not armed, for whoever waits for this one; this one then wakes nobody."""
        successor = Timer(self.env)
        successor.callbacks, self.callbacks = self.callbacks, []
        return successor

    def moved_to(self, at_ms: float, priority: int = NORMAL) -> Timer:
        """A timer that wakes whoever waits for this one at ``at_ms`` instead; this one then wakes nobody."""
        successor = self.disarmed()
        successor.arm(at_ms, priority)
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

    def until(self, at_ms: float, priority: int = NORMAL) -> Timer:
        """A timeout that ends at the absolute time ``at_ms``."""
        timer = Timer(self)
        timer.arm(at_ms, priority)
        return timer

    @property
    def instant_is_complete(self) -> bool:
        """Whether nothing else is scheduled for the present instant, what comes after `LAST` aside."""
        queue = self._queue
        return not queue or queue[0][0] > self._now or queue[0][1] > LAST

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
