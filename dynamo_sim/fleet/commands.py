"""Handoff commands to the workers of a fleet, and the counts that follow from them (`spec 01, 4`)."""

from __future__ import annotations

from bisect import insort

from dynamo_sim.engine.handoff import Cancelled, Reserved
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.fleet.worker import Worker
from dynamo_sim.workload.request import Request


class FleetCommands:
    """Commands to workers by id.

    Room for a pending destination is looked for at once, but only on a worker that has no pass in progress; the answer
    is the `Reserved` destination, which need not be the one that the command was about.

    Args:
        fleet: the workers.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def submit_prefill(self, worker_id: int, request: Request) -> None:
        """Queue a prompt whose KV is to be kept."""
        worker = self._fleet.workers[worker_id]
        worker.scheduler.handoffs.submit_prefill(request)
        self._count(worker, 1)

    def reserve_destination(self, worker_id: int, request: Request) -> bool:
        """Queue a destination; False when its prompt can never fit."""
        worker = self._fleet.workers[worker_id]
        if not worker.scheduler.handoffs.reserve_destination(request):
            return False
        self._count(worker, 1)
        return True

    def attempt(self, worker_id: int) -> Reserved | None:
        """Look for room for the pending destination that has waited longest."""
        worker = self._fleet.workers[worker_id]
        return None if worker.busy else worker.scheduler.handoffs.attempt()

    def activate_destination(self, worker_id: int, request: Request) -> None:
        """The KV of a reserved destination has come."""
        worker = self._fleet.workers[worker_id]
        worker.scheduler.handoffs.activate_destination(request)
        self._count(worker, 0)

    def release_source(self, worker_id: int, request: Request) -> None:
        """Give up the KV that is kept for a request."""
        self._fleet.workers[worker_id].scheduler.handoffs.release_source(request)

    def cancel_source(self, worker_id: int, request: Request) -> None:
        """Forget the prompt of a request, wherever it is."""
        worker = self._fleet.workers[worker_id]
        cancelled = worker.scheduler.handoffs.cancel_source(request)
        self._count(worker, -1 if cancelled is Cancelled.QUEUED else 0)

    def cancel_destination(self, worker_id: int, request: Request) -> None:
        """Forget the destination of a request, wherever it is."""
        worker = self._fleet.workers[worker_id]
        cancelled = worker.scheduler.handoffs.cancel_destination(request)
        self._count(worker, -1 if cancelled is Cancelled.QUEUED else 0)

    def _count(self, worker: Worker, change: int) -> None:
        """Note requests in flight that came or went, and whether an idle worker has something to do."""
        fleet = self._fleet
        worker.in_flight += change
        fleet.in_flight += change
        if worker.busy:
            return
        idle, has_work = fleet.idle_with_work, bool(worker.scheduler.request_count)
        if has_work != (worker.id in idle):
            if has_work:
                insort(idle, worker.id)
            else:
                idle.remove(worker.id)
