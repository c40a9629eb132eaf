"""The least loaded worker gets the request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_sim.routing.context import RouterContext
from dynamo_sim.routing.modes.comparing import ComparingRouter
from dynamo_sim.routing.router import RoutedPool
from dynamo_sim.workload.request import Request

if TYPE_CHECKING:
    from dynamo_sim.scenario.routing import LeastLoadedRouting


class LeastLoaded(ComparingRouter):
    """Compares all active workers by one measure of load.

    Of several with the smallest load the one is taken that was chosen longest ago, new workers first: an idle fleet is
    served in turn.
    """

    def __init__(self, spec: LeastLoadedRouting, context: RouterContext) -> None:
        self._by = spec.by
        super().__init__(spec.mode, [spec.by], spec.scrape_interval_ms, context.waits_for_workers)

    def choose_among(self, request: Request, pool: RoutedPool) -> int:
        """The worker with the smallest load."""
        return self.candidates.take_least(pool, self._by)
