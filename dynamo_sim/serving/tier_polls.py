"""Polls the lower cache tiers of all workers (`spec 11, 4.2`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dynamo_sim.clock import Clock
from dynamo_sim.serving.alarm import Alarm
from dynamo_sim.serving.pool import Pool


class TierPolls:
    """Every worker polls first in every round of an instant, and the earliest landing is an instant.

    While any transfer is in progress, passes are computed one by one: where they end, everybody polls, and a poll moves
    transfers by a step of its own. So the last bits do not depend on how passes are grouped.

    Args:
        clock: the virtual clock.
        pools: the fleets, in the order in which they poll.
        wake: has the rounds of an instant run.
    """

    def __init__(self, clock: Clock, pools: Sequence[Pool], wake: Callable[[], None]) -> None:
        self._clock = clock
        self._pools = [pool for pool in pools if pool.has_lower_tiers]
        self._alarm = Alarm(clock, wake) if self._pools else None

    def __bool__(self) -> bool:
        """Whether there are lower tiers at all."""
        return self._alarm is not None

    def poll(self) -> bool:
        """Let every worker poll its tiers; whether any of them found something."""
        found = False
        for pool in self._pools:
            found |= pool.poll_tiers()
        return found

    @property
    def are_due(self) -> bool:
        """Whether anything is in progress, so that every instant has its polls."""
        return self._alarm is not None and self.deadline_ms < math.inf

    @property
    def deadline_ms(self) -> float:
        """When a poll finds something next, for all that is known now; infinity for never."""
        return min((pool.lower_tiers_deadline_ms() for pool in self._pools), default=math.inf)

    def arm(self) -> None:
        """Wait for the next landing, and let no stretch run across it."""
        if self._alarm is None:
            return
        deadline_ms = self.deadline_ms
        self._alarm.set_to(deadline_ms)
        if deadline_ms < math.inf:
            behind_now_ms = math.nextafter(self._clock.now, math.inf)
            for pool in self._pools:
                for process in pool.processes.values():
                    process.cut(behind_now_ms)
