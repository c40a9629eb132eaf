"""What all ways to serve a fleet are given."""

from __future__ import annotations

import math
from collections.abc import Callable

from dynamo_sim.clock import Clock
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.workload.source import Source


class Serving:
    """A fleet, a workload, and a clock to bring them together on.

    Args:
        clock: the virtual clock, at 0.
        fleet: the workers.
        source: the workload.
        collector: takes the notes.
        max_passes: longest stretch of decode passes; 1 switches stretches off.
        cap_ms: nothing after this time happens; None for no cap.
        progress: called now and then with (virtual time in ms, requests ended).
    """

    def __init__(
        self,
        clock: Clock,
        fleet: Fleet,
        source: Source,
        collector: Collector,
        *,
        max_passes: int = 1_000_000,
        cap_ms: float | None = None,
        progress: Callable[[float, int], None] | None = None,
    ) -> None:
        self.clock = clock
        self.fleet = fleet
        self.source = source
        self.collector = collector
        self.max_passes = max_passes
        self.cap_ms = math.inf if cap_ms is None else cap_ms
        self._progress = progress
        self._ended = 0

    def run(self) -> None:
        """Serve until everything has ended, or the cap.

        Raises:
            SimulationError: requests are left that nothing can ever finish.
        """
        raise NotImplementedError

    def _count_ended(self, requests: int) -> None:
        """Note that so many requests have ended now, and say so now and then."""
        before = self._ended
        self._ended += requests
        if self._progress is not None and before >> 8 != self._ended >> 8:
            self._progress(self.clock.now, self._ended)
