"""One worker, no ticks: the short path of `spec 01, 13`."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator

from simpy.events import Event

from dynamo_sim.clock import Clock
from dynamo_sim.engine.step import Step
from dynamo_sim.errors import SimulationError
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.fleet.worker import Worker
from dynamo_sim.records.fleet_changes import FleetCause
from dynamo_sim.serving.progress import Progress
from dynamo_sim.workload.source import Source

MAX_IDLE_PASSES = 1024
"""Passes in a row that take no time and do nothing (`spec 01, 13`)."""


class SingleWorkerServing:
    """A worker that looks at the workload between its passes.

    Differences to a fleet of one (all visible in results): arrivals are taken in at pass boundaries, the time cap is
    looked at between passes, and a worker that cannot go on ends the run though requests may be due later.

    Args:
        clock: the virtual clock, at 0.
        fleet: of one worker.
        source: the workload.
        collector: takes the notes.
        closed_loop: whether the workload is a closed loop, which takes in nothing while the clock jumps.
        max_passes: longest stretch of decode passes; 1 switches stretches off.
        cap_ms: nothing after this time happens; None for no cap.
        progress: called now and then with (virtual time in ms, requests ended).
    """

    def __init__(
        self,
        clock: Clock,
        fleet: Fleet,
        source: Source,
        collector: Collector,
        *,
        closed_loop: bool,
        max_passes: int = 1_000_000,
        cap_ms: float | None = None,
        progress: Callable[[float, int], None] | None = None,
    ) -> None:
        self.clock = clock
        self.fleet = fleet
        self.source = source
        self.collector = collector
        self.closed_loop = closed_loop
        self.max_passes = max_passes
        self.cap_ms = math.inf if cap_ms is None else cap_ms
        self._progress = Progress(clock, progress)

    def run(self) -> None:
        """Serve until everything has ended, or the cap.

        Raises:
            SimulationError: the worker has requests and cannot go on.
        """
        worker = self.fleet.workers[0]
        self.collector.watch(worker)
        self.collector.fleet_is(0.0, 1, 0, 0, FleetCause.START, (0,))
        self.clock.start(self._serve())
        self.clock.run_dry()
        worker.scheduler.close()
        records = self.collector.records
        records.end_ms = self.clock.now
        records.single_worker = True
        last_ms = max((r.last_token_ms for r in records.requests if r.last_token_ms is not None), default=0.0)
        self.collector.fleet.worker_seconds = max(last_ms / 1000.0, 1e-9)

    def _serve(self) -> Generator[Event, None, None]:
        clock, source = self.clock, self.source
        (worker,) = self.fleet.workers.values()
        idle_passes = 0
        while clock.now <= self.cap_ms:
            self._take_due(worker)
            if not worker.in_flight:
                next_ms = source.next_ms()
                if next_ms is None:
                    return
                yield clock.until(next_ms)
                if not self.closed_loop:
                    self._take_due(worker)
                continue
            step = self._start(worker)
            if step.end_ms > clock.now:
                yield clock.until(step.end_ms)
            finals = worker.finish(step, clock.now)
            for request, rejected in finals:
                source.ended(request, clock.now, rejected)
            if finals:
                self._progress.ended(len(finals))
            if not self.closed_loop:
                self._take_due(worker)
            if step.end_ms > step.start_ms or step.admissions or step.tokens or finals:
                idle_passes = 0
            else:
                idle_passes += 1
                if idle_passes == MAX_IDLE_PASSES:
                    raise SimulationError(self.fleet.dead_end())

    def _start(self, worker: Worker) -> Step:
        """Start the next pass; a stretch ends where the workload or the cap has to be looked at again."""
        beyond_cap_ms = math.nextafter(self.cap_ms, math.inf)
        next_ms = self.source.next_ms()
        return worker.start(
            self.clock.now, self.max_passes, beyond_cap_ms if next_ms is None else min(next_ms, beyond_cap_ms)
        )

    def _take_due(self, worker: Worker) -> None:
        for request in self.source.take_due(self.clock.now, worker.in_flight):
            self.collector.arrived(request)
            worker.receive(request)
