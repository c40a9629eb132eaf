"""When a router reads the metrics of its workers."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Protocol

from simpy.events import Event

from dynamo_sim.clock import Clock, Phase
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.routing.router import RoutedPool, Router


class ScrapedPool(RoutedPool, Protocol):
    """A pool whose router scrapes."""

    clock: Clock
    fleet: Fleet


class RouterScrapes:
    """Has a router scrape its workers at the multiples of its interval, after all else of these instants.

    While nobody works nothing changes, so there is no need to scrape: a run does not go on for the sake of its scrapes.

    Args:
        pool: the workers.
        router: has an interval.
    """

    def __init__(self, pool: ScrapedPool, router: Router) -> None:
        assert router.scrape_interval_ms is not None
        self._pool = pool
        self._router = router
        self._interval_ms = router.scrape_interval_ms
        self._next = 0  # number of the next scrape that has not been made
        self._timer = pool.clock.timer()
        self._is_armed = False
        self._is_started = False

    def arm(self) -> None:
        """Something has changed, or goes on: the next scrape finds it."""
        if self._is_armed:
            return
        clock = self._pool.clock
        if not self._is_started:
            self._is_started = True
            clock.start(self._scrape())
        self._is_armed = True
        self._next = max(self._next, math.ceil(clock.now / self._interval_ms))
        self._timer.arm(max(self._next * self._interval_ms, clock.now), Phase.SCRAPE)

    def _scrape(self) -> Generator[Event, None, None]:
        while True:
            yield self._timer
            self._timer = self._pool.clock.timer()
            self._is_armed = False
            self._next += 1
            self._router.scrape(self._pool)
            if self._pool.fleet.busy_count:
                self.arm()
