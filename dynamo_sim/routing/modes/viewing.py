"""What routers that look at single workers have in common."""

from __future__ import annotations

from dynamo_sim.routing.queueing import QueueingRouter
from dynamo_sim.routing.router import RoutedPool
from dynamo_sim.routing.scraped import ScrapedView
from dynamo_sim.routing.worker_view import WorkerView


class ViewingRouter(QueueingRouter):
    """Sees workers as they are, or as they were when they were scraped.

    Args:
        scrape_interval_ms: how often it scrapes what it does not know itself; None to see workers as they are.
        waits_for_workers: whether requests wait where no worker is active.
    """

    def __init__(self, scrape_interval_ms: float | None = None, waits_for_workers: bool = False) -> None:
        super().__init__(waits_for_workers)
        self.scrape_interval_ms = scrape_interval_ms
        self._views: dict[int, WorkerView] = {}
        self._shown: tuple[WorkerView, ...] = ()
        self._shown_ids: tuple[int, ...] = ()

    def view(self, pool: RoutedPool, worker_id: int) -> WorkerView:
        """What it knows of a worker."""
        view = self._views.get(worker_id)
        if view is None:
            live = pool.worker(worker_id)
            is_scraped = self.scrape_interval_ms is not None
            view = self._views[worker_id] = ScrapedView(live, is_new=True) if is_scraped else live
        return view

    def views(self, pool: RoutedPool) -> tuple[WorkerView, ...]:
        """What it knows of all active workers, by ascending id."""
        ids = pool.active_worker_ids()
        if ids != self._shown_ids:
            self._shown = tuple(self.view(pool, worker_id) for worker_id in ids)
            self._shown_ids = ids
        return self._shown

    def scrape(self, pool: RoutedPool) -> None:
        """Read the metrics of every active worker."""
        self._views.update({i: ScrapedView(pool.worker(i)) for i in pool.active_worker_ids()})
        self._shown_ids = ()

    def worker_removed(self, worker_id: int) -> None:
        """What it knew of the worker is forgotten."""
        self._views.pop(worker_id, None)
