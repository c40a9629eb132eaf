"""One time at which somebody wants to be called."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator

from simpy.events import Event

from dynamo_sim.clock import Clock


class Alarm:
    """A process that calls somebody at a time, which may be moved to an earlier one until then.

    Args:
        clock: the virtual clock.
        ring: called at the time; the alarm is not set any more.

    Attributes:
        at_ms: when it rings; infinity while it is not set.
    """

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self.at_ms = math.inf
        self._ring = ring
        self._timer = clock.timer()
        clock.start(self._run(clock))

    def _run(self, clock: Clock) -> Generator[Event, None, None]:
        while True:
            yield self._timer
            self._timer = clock.timer()
            self.at_ms = math.inf
            self._ring()

    def set_to(self, at_ms: float) -> None:
        """Ring at ``at_ms`` and at no other time; infinity for never."""
        if at_ms == self.at_ms:
            return
        if self.at_ms < math.inf:
            self._timer = self._timer.disarmed()
        if at_ms < math.inf:
            self._timer.arm(at_ms)
        self.at_ms = at_ms

    def set_by(self, at_ms: float) -> None:
        """Ring at ``at_ms``, unless it rings earlier anyway."""
        if self.at_ms == math.inf:
            self._timer.arm(at_ms)
        elif at_ms < self.at_ms:
            self._timer = self._timer.moved_to(at_ms)
        else:
            return
        self.at_ms = at_ms
