"""Routers as a user would write them: they look at every worker at every decision."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_sim.routing.request_view import RequestView
from dynamo_sim.routing.worker_view import WorkerView


class PlainLeastLoaded:
    """The worker with the smallest load; of several the one that was picked longest ago."""

    def __init__(self, by: str) -> None:
        self.by = by
        self.picked: dict[int, int] = {}

    def pick(self, request: RequestView, workers: Sequence[WorkerView], now_ms: float) -> int:
        loads = {worker.id: getattr(worker, self.by) for worker in workers}
        best = min(workers, key=lambda worker: (loads[worker.id], self.picked.get(worker.id, -1), worker.id))
        self.picked[best.id] = len(self.picked) + max(self.picked.values(), default=0)
        return best.id
