"""Requests handed out before they arrive, and workers that go on alone with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dynamo_sim.fleet.worker import WorkerProcess
from dynamo_sim.routing.round_robin import RoundRobin
from dynamo_sim.serving.changing_fleet import ChangingFleet


class LookAhead(ChangingFleet):
    """Knows the worker of every request up to a *horizon*.

    Where no later arrival depends on an earlier request that is the next time a tick or a startup can change who is
    active (`spec 01, 15`). Such requests are put into the inboxes of their workers, and until the horizon every
    worker takes its turns alone.

    Args:
        router: picks a worker for a request.
    """

    def __init__(self, *parts: Any, router: RoundRobin, **options: Any) -> None:
        super().__init__(*parts, **options)
        self.router = router
        self._horizon_ms = 0.0
        self._handled_ms = 0.0
        self._in_inboxes = 0
        self._last_assigned_ms = 0.0

    def _is_over(self) -> bool:
        """Whether nothing is under way, in flight or to come."""
        raise NotImplementedError

    def _stop(self) -> None:
        """End the run."""
        raise NotImplementedError

    def _look_ahead(self, active: Sequence[int], tick_ms: float) -> None:
        """Hand the requests that come before ``tick_ms`` and the end of any startup to the workers ``active``."""
        startups = (startup.ready_ms for startup in self._startups.values())
        self._horizon_ms = min(tick_ms, *startups, math.inf) if active else self.clock.now
        last_ms = min(math.nextafter(self._horizon_ms, -math.inf), self.cap_ms)
        touched: dict[WorkerProcess, None] = {}
        requests = self.source.take_due(last_ms, 0) if active else []
        for request in requests:
            process = self._processes[self.router.pick(active)]
            process.inbox.append(request)
            touched[process] = None
        self.collector.records.requests += requests
        self._in_inboxes += len(requests)
        if requests:
            self._last_assigned_ms = requests[-1].arrival_ms
        for process in touched:
            if process.step is None:
                process.wake_at(process.inbox[0].arrival_ms)
            else:
                process.cut(process.inbox[0].arrival_ms)

    def _take_turn(self, process: WorkerProcess) -> None:
        """What the rounds of an instant come to for a worker that has it to itself."""
        now = self._handled_ms = self.clock.now
        fleet, inbox = self.fleet, process.inbox
        worker = fleet.workers[process.worker_id]
        self._round = 1
        if process.step is not None:
            step, process.step = process.step, None
            self._complete(worker.id, step)
        self._empty_inbox(process, now)
        while worker.scheduler.request_count:
            started = fleet.start(worker, now, self.max_passes)
            if started is None:
                break
            if started.ends_ms[-1] > now:
                started.order = (now, 1, worker.id)
                if inbox:
                    started.cut(inbox[0].arrival_ms)
                process.begin(started)
                return
            self._complete(worker.id, started)
        if inbox:
            process.wake_at(inbox[0].arrival_ms)
        if fleet.leaving:
            self._close(fleet.try_remove_drained())
        if not fleet.in_flight and self._is_over():
            self._stop()

    def _empty_inbox(self, process: WorkerProcess, now_ms: float) -> None:
        """Let the requests in that have arrived by now."""
        inbox = process.inbox
        while inbox and inbox[0].arrival_ms <= now_ms:
            self._in_inboxes -= 1
            request = inbox.popleft()
            self.fleet.dispatch(process.worker_id, request)
            if self.tallies is not None:
                self.tallies[process.worker_id].given(request, request.arrival_ms)

    def bring_up_to_date(self, worker_id: int) -> None:
        """Let the requests in that have arrived at a worker by now, as far as they are known in advance."""
        process = self._processes.get(worker_id)
        if process is not None and process.step is not None:
            self._empty_inbox(process, self.clock.now)
