"""Workers that nothing couples: each runs on its own (`spec 01, 15`)."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

from simpy.events import Event

from dynamo_sim.engine.step import Step
from dynamo_sim.errors import SimulationError
from dynamo_sim.fleet.fleet import Worker
from dynamo_sim.serving.base import Serving
from dynamo_sim.workload.request import Request


class WorkersAreCoupled(Exception):
    """A worker is stuck in a way that counts the looks of the whole fleet (`spec 01, 6.3`): it needs a coordinator."""


class IndependentServing(Serving):
    """Round robin over a fixed fleet, open loop, no later arrival depends on an earlier request.

    The worker of every request is known from the start, so no coordinator is needed: every worker is a process that
    takes its own requests at its pass boundaries. The answers are those of `AggregatedServing` to the bit.
    """

    _handled_ms = 0.0

    def run(self) -> None:
        """Serve until everything has ended, or the cap.

        Raises:
            SimulationError: a worker has requests that it can never finish.
            WorkersAreCoupled: the run has to be done again with a coordinator.
        """
        clock, collector, workers = self.clock, self.collector, list(self.fleet.workers.values())
        requests = self.source.take_due(self.cap_ms, 0)
        collector.records.requests = requests
        collector.fleet_is(0.0, len(workers), 0, 0, "start", tuple(self.fleet.workers))
        for place, worker in enumerate(workers):
            collector.watch(worker.scheduler)
            clock.start(self._serve(worker, requests[place :: len(workers)]))
        clock.run_dry()
        for worker in workers:
            worker.scheduler.close()
        capped = self.source.next_ms() is not None or any(worker.step is not None for worker in workers)
        if not capped and any(worker.in_flight for worker in workers):
            raise SimulationError(self.fleet.dead_end())
        if requests:
            self._handled_ms = max(self._handled_ms, requests[-1].arrival_ms)
        collector.records.steps.sort(key=lambda item: (item[1].end_ms, item[1].last_start_ms, item[0]))
        collector.worker_time_until(self._handled_ms)
        collector.records.end_ms = self._handled_ms

    def _serve(self, worker: Worker, requests: Sequence[Request]) -> Generator[Event, None, None]:
        clock, scheduler, max_passes, cap_ms = self.clock, worker.scheduler, self.max_passes, self.cap_ms
        beyond_cap_ms = math.nextafter(cap_ms, math.inf)
        arrivals = iter(requests)
        following = next(arrivals, None)
        while True:
            now = clock.now
            while following is not None and following.arrival_ms <= now:
                worker.receive(following)
                following = next(arrivals, None)
            step: Step | None = None
            if scheduler.request_count:
                step = worker.start(now, max_passes)
                if len(step.ends_ms) > 1:
                    step.cut(beyond_cap_ms if following is None else min(following.arrival_ms, beyond_cap_ms))
                end_ms = step.ends_ms[-1]
                if end_ms > now:
                    yield clock.until(end_ms)
                    if end_ms > cap_ms:  # begun before the cap: noted to its end, but it never completes
                        self._handled_ms = max(self._handled_ms, step.last_start_ms)
                        scheduler.finish(step)
                        self.collector.passed(worker.id, step)
                        return
                elif not step.progress:
                    if scheduler.retries_matter and following is not None:
                        raise WorkersAreCoupled
                    worker.step = step = None
            if step is not None:
                self._complete(worker, step)
            elif following is not None:
                yield clock.until(following.arrival_ms)
            else:
                return

    def _complete(self, worker: Worker, step: Step) -> None:
        now = self._handled_ms = self.clock.now
        ended = worker.finish(step, now)
        if self.collector.record_passes:
            self.collector.passed(worker.id, step)
        if ended:
            self._count_ended(len(ended))
