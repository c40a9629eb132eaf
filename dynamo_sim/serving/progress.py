"""Says now and then how far a run has come."""

from __future__ import annotations

from collections.abc import Callable

from dynamo_sim.clock import Clock

REPORT_SHIFT = 8
"""A report every 256 requests."""


class Progress:
    """Counts requests that have ended.

    Args:
        clock: the virtual clock.
        report: called now and then with (virtual time in ms, requests ended), or None.
    """

    def __init__(self, clock: Clock, report: Callable[[float, int], None] | None) -> None:
        self._clock = clock
        self._report = report
        self._ended = 0

    def ended(self, requests: int) -> None:
        """So many requests have ended now."""
        before = self._ended
        self._ended += requests
        if self._report is not None and before >> REPORT_SHIFT != self._ended >> REPORT_SHIFT:
            self._report(self._clock.now, self._ended)
