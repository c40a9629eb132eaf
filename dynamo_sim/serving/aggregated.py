"""One fleet that does prefill and decode: the event loop of `spec 01, 5 to 10`."""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from collections.abc import Generator
from typing import Any

from simpy.events import Event

from dynamo_sim.clock import LAST
from dynamo_sim.engine.step import Step
from dynamo_sim.errors import SimulationError
from dynamo_sim.fleet.worker import StartupProcess, WorkerProcess
from dynamo_sim.routing.round_robin import RoundRobin
from dynamo_sim.serving.controller import Controller, is_due_later
from dynamo_sim.serving.look_ahead import LookAhead
from dynamo_sim.serving.observation import PassBuffer, TrafficWindow
from dynamo_sim.workload.request import Outcome, Request

MOST_VAIN_LOOKS = 10_000

Order = tuple[float, int, float]
"""Place in the reference's event queue: the instant an event was queued, the round, and the place in it."""


class AggregatedServing(LookAhead):
    """Coordinates workers, startups, arrivals and a controller on one clock.

    SimPy decides *when*: a process whose time has come reports here. This class decides in which *order* things happen
    that fall on one instant: the last process of an instant lets `_settle` run the reference's rounds.

    Args:
        parts: clock, fleet, source, collector.
        router: picks a worker for a request.
        controller: decides about the size of the fleet, or None.
        options: as for `ChangingFleet`.
    """

    def __init__(
        self, *parts: Any, router: RoundRobin, controller: Controller | None = None, **options: Any
    ) -> None:
        super().__init__(*parts, router=router, **options)
        self.controller = controller
        self.done = False
        self._due: list[tuple[Order, WorkerProcess | StartupProcess]] = []
        self._settle_scheduled = False
        self._arrival_timer = self.clock.timer()
        self._arrival_ms: float | None = None
        self._tick_timer = self.clock.timer()
        self._tick_due = False
        self._begun = False
        self._looks_ahead = False
        self._retries_matter = False
        self._someone_is_stuck = False
        self._vain_looks = 0
        self._tick_ms = math.inf
        self.held: deque[tuple[Request, float]] = deque()
        self._held_ms = 0.0
        self.holds_requests = False
        self._waits_for_workers = controller is not None and controller.waits_for_workers
        watched = controller is not None and controller.wants_passes
        self.traffic = TrafficWindow() if watched else None
        self.passes = PassBuffer(self.traffic) if self.traffic is not None else None

    def run(self) -> None:
        """Serve until everything has ended, or the cap.

        Raises:
            SimulationError: requests are left that nothing can ever finish, or a request finds no worker.
        """
        for worker_id, worker in self.fleet.workers.items():
            self._open(worker_id)
            self._retries_matter = worker.scheduler.retries_matter
        self._looks_ahead = not self.source.hears_endings and not self._retries_matter
        self._note_fleet("start", tuple(self.fleet.workers))
        self.clock.start(self._arrivals())
        self._schedule_settle()
        if self.cap_ms < math.inf:
            self.clock.start(self._stop_at_cap(self.cap_ms))
        self.clock.run_dry()
        if not self.done:
            self._refuse_dead_end()
        self.collector.worker_time_until(self._handled_ms)
        self.collector.records.end_ms = self._handled_ms

    # ------------------------------------------------------------ processes report

    def pass_due(self, process: WorkerProcess) -> None:
        if self.clock.now < self._horizon_ms:
            self._take_turn(process)
        else:
            assert process.step is not None
            self._add(process.step.end_order(process.worker_id), process)

    def _is_alone(self) -> bool:
        """Whether the process that reports is all that happens at this instant, and nothing can follow from it."""
        return (
            not self._due
            and not self._tick_due
            and not self._settle_scheduled
            and not self.source.hears_endings
            and not self.fleet.leaving
            and self.clock.instant_is_complete
        )

    def startup_due(self, process: StartupProcess) -> None:
        # A ready event can hold back completions of its instant: they must be there, not inside a stretch.
        now = self.clock.now
        if process.is_reported:
            return
        for other in self._processes.values():
            if other.step is not None and other.step.has_boundary_at(now):
                other.cut(now)
        self._add(process.order, process)

    def _add(self, order: Order, process: WorkerProcess | StartupProcess) -> None:
        self._insert(order, process)
        self._wake()

    def _insert(self, order: Order, process: WorkerProcess | StartupProcess) -> None:
        if self._due:
            insort(self._due, (order, process), key=lambda item: item[0])
        else:
            self._due.append((order, process))

    def _wake(self) -> None:
        if not self._settle_scheduled:
            if self.clock.instant_is_complete:
                self._settle()
            else:
                self._schedule_settle()

    def _schedule_settle(self) -> None:
        self._settle_scheduled = True
        timer = self.clock.until(self.clock.now, LAST)
        assert timer.callbacks is not None
        timer.callbacks.append(lambda _: self._settle())

    def _arrivals(self) -> Generator[Event, None, None]:
        clock, fleet, source = self.clock, self.fleet, self.source
        while True:
            yield self._arrival_timer
            self._arrival_timer = clock.timer()
            self._arrival_ms = None
            if not self._retries_matter and self._is_alone():
                # Nothing else happens now: requests for busy workers just join their queues.
                self._handled_ms = clock.now
                self._round = 1
                for request in source.take_due(clock.now, fleet.in_flight):
                    self._arrive(request)
                if not fleet.idle_with_work:
                    self._arm_arrivals()
                    continue
            self._wake()

    def _ticks(self) -> Generator[Event, None, None]:
        while True:
            yield self._tick_timer
            self._tick_timer = self.clock.timer()
            self._tick_ms = math.inf
            self._tick_due = True
            self._wake()

    def _stop_at_cap(self, cap_ms: float) -> Generator[Event, None, None]:
        yield self.clock.until(cap_ms, LAST + 1)
        if self._nothing_to_come():
            self._refuse_dead_end()
        for process in self._processes.values():
            step = process.step
            if step is not None:
                # Passes that have begun are noted to their ends, but their completions never happen.
                process.cut(math.nextafter(cap_ms, math.inf))
                self._handled_ms = max(self._handled_ms, step.last_start_ms, self._last_assigned_ms)
                self.fleet.workers[process.worker_id].scheduler.finish(step)
                self.collector.passed(process.worker_id, step)
        self._stop()

    def _stop(self) -> None:
        self.done = True
        for worker in self.fleet.workers.values():
            worker.scheduler.close()
        self.clock.stop()

    # ------------------------------------------------------------ one instant

    def _settle(self) -> None:
        """The rounds of the present instant (`spec 01, 6`)."""
        self._settle_scheduled = False
        fleet, source, due = self.fleet, self.source, self._due
        now = self._handled_ms = self.clock.now
        self._round = 0
        changed = True
        while changed:
            self._round += 1
            changed = False
            if due:
                changed = self._take_passes() | self._take_startups()
            next_ms = source.next_ms()
            if source.hears_endings or (next_ms is not None and next_ms <= now):
                for request in source.take_due(now, fleet.in_flight + len(self.held)):
                    self._arrive(request)
                    changed = True
            if self.held:
                changed |= self._release_held()
            if fleet.idle_with_work:
                changed |= self._drive()
            if fleet.leaving:
                removed = fleet.try_remove_drained()
                if removed:
                    self._close(removed)
                    changed = True
            if self._tick_due and not due and self.clock.instant_is_complete:
                self._tick_due = False
                if not self._is_over():
                    self._tick()
                    self._report_instant_startups()
                    changed = True
        if due:
            # Held back by a stale ready event in a round without change: another look at the same instant.
            self._schedule_settle()
        elif not fleet.in_flight and self._is_over():
            self._stop()
        else:
            if not self._begun:
                self._begin_ticks()
            if self._looks_ahead:
                # A tick that still waits for its turn in this instant can change who is active, too.
                known = () if self.holds_requests or self._tick_due else self.fleet.active_worker_ids()
                self._look_ahead(known, self._tick_ms)
            self._arm_arrivals()

    def _take_passes(self) -> bool:
        """The completions at the head of what is due."""
        due = self._due
        changed = False
        while due and isinstance(process := due[0][1], WorkerProcess):
            del due[0]
            step, process.step = process.step, None
            assert step is not None
            self._complete(process.worker_id, step)
            self._empty_inbox(process, self.clock.now)
            changed = True
        return changed

    def _take_startups(self) -> bool:
        """The ready events at the head of what is due; stale ones change nothing."""
        due = self._due
        changed = False
        while due and isinstance(startup := due[0][1], StartupProcess):
            del due[0]
            self._startups.pop(startup.worker_id, None)
            if self.fleet.mark_worker_ready(startup.worker_id):
                self._note_fleet("ready", (startup.worker_id,))
                if self.tallies is not None:
                    self.tallies[startup.worker_id].ready_ms = self.clock.now
                changed = True
        return changed

    def _report_instant_startups(self) -> None:
        """A startup too short for the clock to tell is over in the next round of this very instant."""
        for startup in self._startups.values():
            if startup.ready_ms <= self.clock.now and not startup.is_reported:
                startup.is_reported = True
                self._insert(startup.order, startup)

    def _drive(self) -> bool:
        """Start every pass that can start."""
        fleet, now = self.fleet, self.clock.now
        changed = False
        max_passes = 1 if self._someone_is_stuck else self.max_passes
        while (completion := fleet.drive_ready(now, max_passes, self.collector)) is not None:
            worker_id, step = completion.worker_id, completion.step
            if step.ends_ms[-1] > now:
                step.order = (now, self._round, worker_id)
                self._processes[worker_id].begin(step)
            else:
                self._complete(worker_id, step)
            changed = True
        if self._retries_matter and self._someone_is_stuck != bool(fleet.idle_with_work):
            # A worker that cannot go on is tried again at every instant of the fleet: none may be skipped.
            self._someone_is_stuck = not self._someone_is_stuck
            for process in self._processes.values():
                process.cut(now)
        return changed

    def _begin_ticks(self) -> None:
        self._begun = True
        if self.controller is None:
            return
        first = self.controller.first_tick_ms()
        if first is not None and math.isfinite(first):
            self.clock.start(self._ticks())
            self._arm_tick(max(first, self.clock.now))
        else:
            self.traffic = self.passes = None

    def _arm_tick(self, at_ms: float) -> None:
        self._tick_ms = at_ms
        self._tick_timer.arm(at_ms)

    def _arm_arrivals(self) -> None:
        next_ms = self.source.next_ms()
        if next_ms is None or (self._looks_ahead and self.clock.now < self._horizon_ms < next_ms):
            return
        if self._arrival_ms is None:
            self._arrival_ms = next_ms
            self._arrival_timer.arm(next_ms)
        elif next_ms < self._arrival_ms:
            self._arrival_ms = next_ms
            self._arrival_timer = self._arrival_timer.moved_to(next_ms)

    def _arrive(self, request: Request) -> None:
        self.collector.arrived(request)
        if self._waits_for_workers and (self.holds_requests or not self.fleet.has_active_workers):
            self.held.append((request, self.clock.now))
            self._report_waiting()
        else:
            self._dispatch(request)

    def _report_waiting(self) -> None:
        """Let the controller be asked earlier, if it wants to, for a request that waits for a worker."""
        assert self.controller is not None
        asked_ms = self.controller.request_waits(self.clock.now) if self._begun else None
        if asked_ms is not None and asked_ms < self._tick_ms:
            self._tick_ms = asked_ms
            self._tick_timer = self._tick_timer.moved_to(asked_ms)

    def _dispatch(self, request: Request) -> None:
        now = self.clock.now
        worker_id = self.router.pick(self.fleet.active_worker_ids())
        process = self._processes[worker_id]
        if self._round == 1:  # a pass that ends now has ended before anybody arrives
            ended = process.end_at(now)
            if ended is not None:
                self._complete(worker_id, ended)
        self._empty_inbox(process, now)  # who came before stands before it
        self.fleet.dispatch(worker_id, request)
        process.cut(math.nextafter(now, math.inf))
        if self.tallies is not None:
            self.tallies[worker_id].given(request, now)

    def _release_held(self) -> bool:
        """Let the requests in that waited in front of the fleet."""
        if self.holds_requests or not self.fleet.has_active_workers:
            return False
        while self.held:
            request, since_ms = self.held.popleft()
            self._held_ms += self.clock.now - since_ms
            self._dispatch(request)
        return True

    def _lose(self, requests: list[Request], undelivered: list[Request]) -> None:
        now = self.clock.now
        self._in_inboxes -= len(undelivered)
        for request in undelivered:
            request.outcome = Outcome.FAILED
            request.ended_ms = now
        for request in (*requests, *undelivered):
            if self.source.hears_endings:
                self.source.ended(request, now, rejected=True)
        self.killed_requests += len(requests) + len(undelivered)
        self._count_ended(len(requests) + len(undelivered))
        self._schedule_settle()

    def _complete(self, worker_id: int, step: Step) -> None:
        """All consequences of the end of a step (`spec 01, 6.2`)."""
        now = self.clock.now
        finals = self.fleet.complete(self.fleet.workers[worker_id], step, now)
        if self.collector.record_passes:
            self.collector.passed(worker_id, step)
        if self.passes is not None:
            self.passes.ended(worker_id, step, now, self._round)
        tally = None if self.tallies is None else self.tallies[worker_id]
        if tally is not None:
            tally.passed(step)
        if not finals:
            return
        if tally is not None:
            for request, _ in finals:
                tally.ended(request, now)
        for request, rejected in finals:
            if self.traffic is not None and not rejected:
                self.traffic.completed(request)
            if self.source.hears_endings:
                self.source.ended(request, now, rejected)
        self._count_ended(len(finals))

    # ------------------------------------------------------------ scaling

    def _tick(self) -> None:
        assert self.controller is not None
        now = self.clock.now
        next_ms = self.controller.on_tick(now, self)
        if next_ms is not None and is_due_later(next_ms, now):
            if self._nothing_to_come():
                self._refuse_dead_end()
            self._check_patience()
            self._arm_tick(next_ms)
        else:
            self.traffic = self.passes = None

    def _observes_passes(self) -> bool:
        return self.passes is not None

    def metrics(self) -> dict[str, Any]:
        """What the fleet shows a planner now; empties the buffers."""
        now = self.clock.now
        snapshots: list[dict[str, Any]] = []
        traffic: dict[str, Any] = {}
        if self.passes is not None and self.traffic is not None:
            for process in self._processes.values():
                if process.step is not None:
                    self.passes.under_way(process.worker_id, process.step, now)
            snapshots = self.passes.take()
            traffic = self.traffic.take(now)
        return {
            "now_ms": now,
            "prefill_fpm_snapshots": [],
            "decode_fpm_snapshots": snapshots,
            "active_prefill_count": 0,
            "active_decode_count": len(self.fleet.active_worker_ids()),
            "total_prefill_count": 0,
            "total_decode_count": self.fleet.worker_count,
            "traffic": traffic,
        }

    def held_ms(self) -> float:
        """Time that requests have waited in front of the fleet so far, summed over them, in ms."""
        return self._held_ms + sum(self.clock.now - since_ms for _, since_ms in self.held)

    def idle_until_ms(self) -> float | None:
        """When the next request arrives, in ms; None while there is something to do, or where it is not known."""
        fleet = self.fleet
        if fleet.in_flight or fleet.busy_count or self._in_inboxes or self.held:
            return None
        return self.source.next_ms()

    # ------------------------------------------------------------ the end

    def _is_over(self) -> bool:
        """Whether nothing is under way, in flight or to come (`spec 01, 7`)."""
        fleet = self.fleet
        return (
            not fleet.in_flight
            and not fleet.busy_count
            and not self._in_inboxes
            and not self.held
            and self.source.exhausted()
            and fleet.is_drained
        )

    def _nothing_to_come(self) -> bool:
        """Whether requests are left but nothing can set anything going again."""
        return (
            not self._is_over()
            and not self.fleet.busy_count
            and not self._startups
            and not self._due
            and not self._in_inboxes
            and not self.held
            and self.source.next_ms() is None
        )

    def _check_patience(self) -> None:
        """Refuse to look for ever at requests that wait for a worker nobody orders."""
        waits = self.held and not self.fleet.busy_count and self.source.next_ms() is None
        self._vain_looks = self._vain_looks + 1 if waits else 0
        if self._vain_looks > MOST_VAIN_LOOKS:
            raise SimulationError(
                f"{len(self.held)} requests wait for a worker, and none has become ready in {MOST_VAIN_LOOKS:,} looks "
                "of the policy: it orders none, or takes them back before their startup is over; allow it to scale up "
                "from 0, or keep at least one worker"
            )

    def _refuse_dead_end(self) -> None:
        if self.held and not self.fleet.in_flight:
            raise SimulationError(
                f"{len(self.held)} requests wait for a worker, and nothing will bring one: the policy has stopped "
                "looking, or was never going to scale up from 0; keep at least one worker"
            )
        raise SimulationError(self.fleet.dead_end())
