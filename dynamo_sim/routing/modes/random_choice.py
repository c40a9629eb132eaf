"""Each request goes to a random worker."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_sim.random_streams import stream
from dynamo_sim.routing.context import RouterContext
from dynamo_sim.routing.queueing import QueueingRouter, refuse_without_workers
from dynamo_sim.routing.router import RoutedPool
from dynamo_sim.workload.request import Request


class RandomChoice(QueueingRouter):
    """Draws one of the active workers, each as likely as any other."""

    is_oblivious = True

    def __init__(self, context: RouterContext) -> None:
        super().__init__(context.waits_for_workers)
        self._random = stream(context.seed, f"{context.stream}/random")

    def pick(self, active_ids: Sequence[int]) -> int:
        """A random worker.

        Raises:
            SimulationError: no worker is active.
        """
        refuse_without_workers(active_ids, "random routing")
        return active_ids[int(self._random.integers(len(active_ids)))]

    def choose(self, request: Request, pool: RoutedPool, now_ms: float) -> int:
        """A random worker."""
        return self.pick(pool.active_worker_ids())
