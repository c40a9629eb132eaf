"""Round robin over the active workers (`spec 01, 8`)."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_sim.routing.queueing import QueueingRouter, refuse_without_workers
from dynamo_sim.routing.router import RoutedPool
from dynamo_sim.workload.request import Request


class RoundRobin(QueueingRouter):
    """Takes the active workers in turn.

    The cursor counts positions in the list of active workers, not ids, and is not wrapped when it is stored: after a
    full turn over n workers it is n, so a worker that has become active in the meantime is next.
    """

    is_oblivious = True

    def __init__(self, waits_for_workers: bool = False) -> None:
        super().__init__(waits_for_workers)
        self.cursor = 0

    def pick(self, active_ids: Sequence[int]) -> int:
        """The worker for the next request.

        Raises:
            SimulationError: no worker is active.
        """
        refuse_without_workers(active_ids, "round robin")
        place = self.cursor % len(active_ids)
        self.cursor = place + 1
        return active_ids[place]

    def choose(self, request: Request, pool: RoutedPool, now_ms: float) -> int:
        """The next worker in turn."""
        return self.pick(pool.active_worker_ids())
