"""What routers that compare all active workers have in common."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_sim.routing.modes.candidates import Candidates, Measure
from dynamo_sim.routing.queueing import QueueingRouter, refuse_without_workers
from dynamo_sim.routing.router import RoutedPool
from dynamo_sim.workload.request import Request


class ComparingRouter(QueueingRouter):
    """Keeps the active workers side by side; `choose_among` names one of them.

    Args:
        mode: its name, for messages.
        measures: what of the workers it reads.
        scrape_interval_ms: how often it scrapes what it does not know itself; None to see workers as they are.
        waits_for_workers: whether requests wait where no worker is active.
    """

    reads_changes = True

    def __init__(
        self,
        mode: str,
        measures: Sequence[Measure],
        scrape_interval_ms: float | None = None,
        waits_for_workers: bool = False,
    ) -> None:
        super().__init__(waits_for_workers)
        self.candidates = Candidates(measures, is_scraped=scrape_interval_ms is not None)
        self.scrape_interval_ms = scrape_interval_ms
        self._mode = mode

    def choose(self, request: Request, pool: RoutedPool, now_ms: float) -> int:
        """The worker for a request.

        Raises:
            SimulationError: no worker is active.
        """
        refuse_without_workers(self.candidates.ids, self._mode)
        self.candidates.look(pool, now_ms)
        if self.explains:
            self.terms = self.candidates.terms(pool)
        return self.choose_among(request, pool)

    def choose_among(self, request: Request, pool: RoutedPool) -> int:
        """The worker for a request; the candidates have been looked at, and there is at least one."""
        raise NotImplementedError

    def scrape(self, pool: RoutedPool) -> None:
        """Read the metrics of every worker."""
        self.candidates.scrape(pool)

    def worker_joined(self, worker_id: int) -> None:
        """A worker is a candidate from now on."""
        self.candidates.joined(worker_id)

    def worker_draining(self, worker_id: int) -> None:
        """A worker is no candidate any more."""
        self.candidates.left(worker_id)

    def worker_removed(self, worker_id: int) -> None:
        """It was no candidate any more, or never one."""
        self.candidates.left(worker_id)
