"""Requests handed out before they arrive, and workers that go on alone with them (`spec 01, 15`)."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence

from dynamo_sim.fleet.processes import WorkerProcess
from dynamo_sim.serving.instant import Instant
from dynamo_sim.serving.pool import Pool
from dynamo_sim.workload.request import Request
from dynamo_sim.workload.source import Source


class LookAhead:
    """Knows the worker of every request up to a *horizon*: the next time that can change who is active.

    With an oblivious router and a workload in which no later arrival depends on an earlier request, requests can be put
    into the inboxes of their workers ahead of time. Up to the horizon every worker then goes on alone, from one of
    its own events to the next.

    Args:
        pool: the workers.
        source: the workload.
        instant: the order of the present instant.
        max_passes: longest stretch of decode passes.
        cap_ms: nothing after this time happens.

    Attributes:
        horizon_ms: up to here, and not including it, workers go on alone.
        last_assigned_ms: arrival of the last request that was handed out ahead.
    """

    def __init__(self, pool: Pool, source: Source, instant: Instant, max_passes: int, cap_ms: float) -> None:
        self.horizon_ms = 0.0
        self.last_assigned_ms = 0.0
        self._pool = pool
        self._source = source
        self._instant = instant
        self._max_passes = max_passes
        self._cap_ms = cap_ms
        self._undisturbed = False

    def hand_out(self, active: Sequence[int], tick_ms: float) -> list[Request]:
        """Give the requests that come before ``tick_ms`` and before any startup is over to the workers ``active``."""
        pool = self._pool
        if not active:
            self.horizon_ms = pool.clock.now
            return []
        self.horizon_ms = min(tick_ms, pool.next_change_ms())
        # In a fixed fleet without a cap, where nobody watches, nothing happens to a worker before its next request.
        forever = self.horizon_ms == self._cap_ms == math.inf
        self._undisturbed = forever and pool.tallies is None and pool.passes is None
        last_ms = min(math.nextafter(self.horizon_ms, -math.inf), self._cap_ms)
        requests = self._source.take_due(last_ms, 0)
        if not requests:
            return requests
        processes, pick = pool.processes, pool.router.pick
        touched: dict[WorkerProcess, None] = {}
        for request in requests:
            process = processes[pick(active)]
            process.inbox.append(request)
            touched[process] = None
        pool.inbox_count += len(requests)
        self.last_assigned_ms = requests[-1].arrival_ms
        for process in touched:
            if process.worker.step is None:
                process.wake_at(process.inbox[0].arrival_ms)
            else:
                process.cut(process.inbox[0].arrival_ms)
        return requests

    def take_turn(self, process: WorkerProcess, now: float) -> list[tuple[Request, bool]]:
        """What the rounds of an instant come to for a worker that has it to itself; the requests that ended.

        A plain copy of one round for one worker: its step completes, its arrivals join its queue, passes of no time are
        done, and the next pass starts. This runs once for nearly everything that happens in a run.
        """
        pool, worker, inbox = self._pool, process.worker, process.inbox
        fleet, scheduler = pool.fleet, worker.scheduler
        self._instant.round = 1
        ended: list[tuple[Request, bool]] = []
        step = worker.step
        if step is not None:
            fleet.busy_count -= 1
        while True:
            if step is not None:
                finals = worker.finish(step, now)
                if finals:
                    fleet.in_flight -= len(finals)
                    ended = ended + finals if ended else finals
                if pool.tallies is not None or pool.passes is not None:
                    pool.note_completion(worker.id, step, finals)
            if inbox and inbox[0].arrival_ms <= now:
                self._receive(process, now)
            if not scheduler.request_count:
                break
            if inbox:
                step = scheduler.start(now, self._max_passes, inbox[0].arrival_ms, self._undisturbed)
            else:
                step = scheduler.start(now, self._max_passes, self._cap_ms)
            worker.step = step
            if step.ends_ms[-1] > now:
                fleet.busy_count += 1
                if fleet.idle_with_work and worker.id in fleet.idle_with_work:  # it could not go on until now
                    fleet.idle_with_work.remove(worker.id)
                pool.begin(process, step, now)
                return ended
            if not step.progress:
                worker.step = None
                if worker.id not in fleet.idle_with_work:
                    insort(fleet.idle_with_work, worker.id)
                break
        if inbox:
            process.wake_at(inbox[0].arrival_ms)
        return ended

    def _receive(self, process: WorkerProcess, now_ms: float) -> None:
        """Let the requests of the inbox in that have arrived by now."""
        pool, worker, inbox = self._pool, process.worker, process.inbox
        while inbox and inbox[0].arrival_ms <= now_ms:
            request = inbox.popleft()
            worker.receive(request)
            pool.inbox_count -= 1
            pool.fleet.in_flight += 1
            if pool.tallies is not None:
                pool.tallies[worker.id].dispatched(request, request.arrival_ms)
