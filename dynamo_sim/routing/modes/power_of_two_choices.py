"""Two workers are drawn, and the less loaded one gets the request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_sim.random_streams import stream
from dynamo_sim.routing.context import RouterContext
from dynamo_sim.routing.modes.viewing import ViewingRouter
from dynamo_sim.routing.queueing import refuse_without_workers
from dynamo_sim.routing.router import RoutedPool
from dynamo_sim.workload.request import Request

if TYPE_CHECKING:
    from dynamo_sim.scenario.routing import PowerOfTwoChoicesRouting


class PowerOfTwoChoices(ViewingRouter):
    """Draws two different workers, each pair as likely as any other; of equally loaded ones takes the first drawn."""

    def __init__(self, spec: PowerOfTwoChoicesRouting, context: RouterContext) -> None:
        super().__init__(spec.scrape_interval_ms, context.waits_for_workers)
        self._by = spec.by
        self._random = stream(context.seed, f"{context.stream}/power_of_two_choices")

    def choose(self, request: Request, pool: RoutedPool, now_ms: float) -> int:
        """The less loaded of two workers.

        Raises:
            SimulationError: no worker is active.
        """
        ids = pool.active_worker_ids()
        refuse_without_workers(ids, "power_of_two_choices")
        if len(ids) == 1:
            self.terms = None
            return ids[0]
        pair = int(self._random.integers(len(ids) * (len(ids) - 1)))
        first, second = divmod(pair, len(ids) - 1)
        second += second >= first
        one, other = self.view(pool, ids[first]), self.view(pool, ids[second])
        load, other_load = getattr(one, self._by), getattr(other, self._by)
        if self.explains:
            self.terms = {"worker_ids": (one.id, other.id), self._by: (load, other_load)}
        return other.id if other_load < load else one.id
