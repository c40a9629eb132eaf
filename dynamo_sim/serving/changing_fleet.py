"""A fleet that grows and shrinks while it serves: its processes, and who is told of changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any

from simpy.events import Event

from dynamo_sim.clock import LAST
from dynamo_sim.engine.step import Step
from dynamo_sim.fleet.worker import StartupProcess, WorkerProcess
from dynamo_sim.serving.base import Serving
from dynamo_sim.serving.controller import TargetEffect
from dynamo_sim.serving.sampling import WorkerTally
from dynamo_sim.workload.request import Request


class ChangingFleet(Serving):
    """Keeps a worker process for every worker and a startup process for every one that starts.

    What is to happen when their time comes is the business of the class that is made of it (`Coordinator`).

    Args:
        startup_ms: duration of the startup of a worker, by id; None for the fleet's own.
        drain_grace_ms: how long a leaving worker may go on before it is killed; None for ever.

    Attributes:
        tallies: what every worker has done so far, by id, also of those that are gone; None until somebody asks.
    """

    def __init__(
        self,
        *parts: Any,
        startup_ms: Callable[[int], float] | None = None,
        drain_grace_ms: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*parts, **options)
        self._startup_ms = startup_ms
        self._drain_grace_ms = drain_grace_ms
        self.killed_requests = 0
        self.tallies: dict[int, WorkerTally] | None = None
        self._asked: frozenset[str] | None = None
        self._watcher: Callable[[str, tuple[int, ...], float], None] | None = None
        self._processes: dict[int, WorkerProcess] = {}
        self._startups: dict[int, StartupProcess] = {}
        self._round = 0

    def pass_due(self, process: WorkerProcess) -> None:
        raise NotImplementedError

    def startup_due(self, process: StartupProcess) -> None:
        raise NotImplementedError

    def _complete(self, worker_id: int, step: Step) -> None:
        """All consequences of the end of a step."""
        raise NotImplementedError

    def _observes_passes(self) -> bool:
        """Whether forward-pass metrics are wanted of new workers."""
        raise NotImplementedError

    def apply_target(self, target: int) -> TargetEffect:
        """Scale to ``target`` workers (`Fleet.apply_target_count`), with the processes that belong to it."""
        fleet, now = self.fleet, self.clock.now
        starting = set(fleet.starting)
        added, marked, removed = fleet.apply_target_count(target)
        cancelled = sorted(worker_id for worker_id in starting if worker_id not in fleet.workers)
        if cancelled:
            for worker_id in cancelled:
                self._startups.pop(worker_id).cancel()
            self._close(cancelled, "cancelled")
        for worker_id in added:
            self._open(worker_id)
            delay = fleet.startup_time_ms
            if delay is not None:
                if self._startup_ms is not None:
                    delay = self._startup_ms(worker_id)
                order = (now, self._round, math.inf)
                self._startups[worker_id] = StartupProcess(self.clock, worker_id, now + delay, order, self)
        if added:
            self._note_fleet("added", tuple(added))
        if marked:
            self._note_fleet("marked", tuple(marked))
        self._close(removed)
        if self._drain_grace_ms is not None:
            for worker_id in marked:
                if worker_id in fleet.workers:
                    self.clock.start(self._kill_after(worker_id, now + self._drain_grace_ms))
        return TargetEffect(tuple(added), tuple(cancelled), tuple(marked))

    def _kill_after(self, worker_id: int, at_ms: float) -> Generator[Event, None, None]:
        """Kill a leaving worker if it has not drained by then."""
        yield self.clock.until(at_ms, LAST + 2)
        if worker_id not in self.fleet.workers:
            return
        process = self._processes[worker_id]
        step = process.step
        if step is not None and step.keep_ended(self.clock.now):
            self._complete(worker_id, step)
        waiting = list(process.inbox)
        process.inbox.clear()
        process.stop()
        lost = self.fleet.kill(worker_id, self.clock.now)
        self._close([worker_id], "killed")
        self._lose(lost, waiting)

    def _lose(self, requests: list[Request], undelivered: list[Request]) -> None:
        """Requests of a killed worker have failed."""
        raise NotImplementedError

    def _open(self, worker_id: int) -> None:
        scheduler = self.fleet.workers[worker_id].scheduler
        self.collector.watch(scheduler)
        if self._observes_passes():
            scheduler.observed = True
        self._processes[worker_id] = WorkerProcess(self.clock, worker_id, self)
        if self.tallies is not None:
            self._open_tally(worker_id)

    def _close(self, worker_ids: list[int], cause: str = "removed") -> None:
        if worker_ids:
            for worker_id in worker_ids:
                del self._processes[worker_id]
            self._note_fleet(cause, tuple(worker_ids))

    def _note_fleet(self, cause: str, worker_ids: tuple[int, ...]) -> None:
        fleet = self.fleet
        if self._watcher is not None:
            self._watcher(cause, worker_ids, self.clock.now)
            if cause == "added":
                ready = tuple(i for i in worker_ids if i not in fleet.starting)
                if ready:
                    self._watcher("ready", ready, self.clock.now)
        active, starting = len(fleet.active_worker_ids()), len(fleet.starting)
        leaving = fleet.worker_count - active - starting
        self.collector.fleet_is(self.clock.now, active, starting, leaving, cause, worker_ids)

    def keep_tallies(self, asked: frozenset[str] | None) -> dict[int, WorkerTally]:
        """From now on keep a `WorkerTally` of the metrics ``asked`` for, of every worker; keyed by id."""
        self.tallies = {}
        self._asked = asked
        for worker_id in self.fleet.workers:
            self._open_tally(worker_id)
        return self.tallies

    def _open_tally(self, worker_id: int) -> None:
        assert self.tallies is not None
        ready_ms = None if worker_id in self.fleet.starting else self.clock.now
        worker = self.fleet.workers[worker_id]
        self.tallies[worker_id] = WorkerTally(worker, self.clock.now, ready_ms, self._asked)

    def watch_fleet(self, watcher: Callable[[str, tuple[int, ...], float], None]) -> None:
        """Tell ``watcher(cause, worker ids, time in ms)`` of every change of the fleet."""
        self._watcher = watcher
