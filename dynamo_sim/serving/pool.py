"""One fleet on the clock: its processes, its router, its targets, and who hears of changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any

from simpy.events import Event

from dynamo_sim.clock import Clock, Phase
from dynamo_sim.engine.step import Step
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.fleet import Fleet, TargetEffect
from dynamo_sim.fleet.processes import Coordinator, EventOrder, StartupProcess, WorkerProcess
from dynamo_sim.fleet.worker import Worker
from dynamo_sim.kv.kv_events import KvEvent
from dynamo_sim.records.fleet_changes import FleetCause
from dynamo_sim.routing.router import Dispatch, Router
from dynamo_sim.routing.worker_view import WorkerView
from dynamo_sim.serving.instant import Instant, RoundStep
from dynamo_sim.serving.planner_metrics import PassBuffer, TrafficWindow
from dynamo_sim.serving.router_scrapes import RouterScrapes
from dynamo_sim.serving.worker_metrics import TALLIES, WorkerTally
from dynamo_sim.workload.request import Outcome, Request

MAX_BOUNDARIES = 1 << 16
"""So many ends of passes are remembered before those that are over are forgotten."""

FleetListener = Callable[[FleetCause, tuple[int, ...], float], None]
"""Hears of a change of the fleet: cause, worker ids, time in ms."""


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How the fleet of a pool changes.

    Attributes:
        startup_ms: duration of the startup of a worker, by id; None for the fleet's own.
        drain_grace_ms: how long a draining worker may go on before it is killed; None for ever.
    """

    startup_ms: Callable[[int], float] | None = None
    drain_grace_ms: float | None = None


class Pool:
    """A fleet whose workers and startups are processes on the clock.

    A run has one pool, or one for prefill and one for decode: nothing here knows of another one.

    Args:
        fleet: the workers.
        router: decides which of them a request goes to.
        clock, instant: the virtual clock, and the order of its present instant.
        collector: takes the notes.
        coordinator: hears that the time of a process has come.
        requests_lost: called with the requests of a worker that was killed, which have failed.
        options: how the fleet changes.
        passes_step: the step of a round in which this pool starts its passes.

    Attributes:
        processes: the worker processes by id.
        startups: the startup processes of workers that are starting, by id.
        tallies: what every worker has done so far, by id, also of those that are gone; None until somebody asks.
        passes: forward-pass metrics since the last tick; None while nobody wants them.
        traffic: the requests since the last tick, for a planner; None while nobody wants them.
        driven_id: while passes start in a round, the worker whose turn it is (`spec 01, 6.1`); else below all ids.
        inbox_count: requests in the inboxes of the workers, which have not arrived yet.
    """

    def __init__(
        self,
        fleet: Fleet,
        router: Router,
        clock: Clock,
        instant: Instant,
        collector: Collector,
        coordinator: Coordinator,
        *,
        requests_lost: Callable[[list[Request]], None],
        options: PoolOptions,
        passes_step: RoundStep = RoundStep.PASSES,
    ) -> None:
        self.fleet = fleet
        self.router = router
        self.clock = clock
        self.processes: dict[int, WorkerProcess] = {}
        self.startups: dict[int, StartupProcess] = {}
        self.tallies: dict[int, WorkerTally] | None = None
        self.passes: PassBuffer | None = None
        self.traffic: TrafficWindow | None = None
        self.driven_id = -1
        self.inbox_count = 0
        self._boundaries_ms: set[float] | None = None
        self._max_boundaries = MAX_BOUNDARIES
        self._changed: set[int] | None = set() if router.reads_changes else None
        self._scrapes = RouterScrapes(self, router) if router.scrape_interval_ms is not None else None
        self._publishes = router.reads_kv_events
        self._may_publish: dict[
            int, Worker
        ] = {}  # workers whose cache may have changed, or will in their present step
        self._instant = instant
        self._collector = collector
        self._coordinator = coordinator
        self._requests_lost = requests_lost
        self._options = options
        self._passes_step = passes_step
        self._tallied: frozenset[str] | None = None
        self._listener: FleetListener | None = None

    def open(self) -> None:
        """Begin with the workers that the fleet has."""
        for worker in self.fleet.workers.values():
            self._open(worker)
            self.router.worker_joined(worker.id)
        self._note_fleet(FleetCause.START, tuple(self.fleet.workers))

    def close(self) -> None:
        """The run is over: what running requests have generated so far is written down."""
        for worker in self.fleet.workers.values():
            worker.scheduler.close()

    # ------------------------------------------------------------ who is there

    @property
    def is_working(self) -> bool:
        """Whether any request is here, in progress or on its way to a worker."""
        fleet = self.fleet
        return bool(fleet.in_flight or fleet.busy_count or self.inbox_count or self.router.queued_count)

    def active_worker_ids(self) -> tuple[int, ...]:
        """Ids of the workers that are neither starting nor draining, ascending."""
        return self.fleet.active_worker_ids()

    def worker(self, worker_id: int) -> WorkerView:
        """The state of a worker that exists."""
        return WorkerView(self.fleet.workers[worker_id], self._now_ms)

    def take_kv_events(self) -> list[tuple[int, Iterable[KvEvent]]]:
        """KV events that have become visible since the last call, by worker (`spec 06, 3.1`).

        In the first round of an instant the passes that start now have not started yet, but for those of workers that
        have had their turn in it.
        """
        taken: list[tuple[int, Iterable[KvEvent]]] = []
        now, all_started = self.clock.now, self._instant.round > 1
        for worker_id, worker in list(self._may_publish.items()):
            scheduler = worker.scheduler
            if scheduler.kv_events_from_ms <= now:
                started = all_started or worker_id <= self.driven_id
                taken.append((worker_id, scheduler.take_kv_events(now, starts_included=started)))
            if scheduler.kv_events_from_ms == math.inf:
                del self._may_publish[worker_id]
        return taken

    def take_changed(self) -> set[int]:
        """Ids of the workers that may have changed since the last call in another way than by growing.

        A worker that cannot go on is tried again at every instant, which may change its queue.
        """
        assert self._changed is not None
        taken, self._changed = self._changed, set()
        taken.update(self.fleet.idle_with_work)
        return taken

    def _note_change(self, worker_id: int) -> None:
        if self._changed is not None:
            self._changed.add(worker_id)
        if self._scrapes is not None:
            self._scrapes.arm()

    def _now_ms(self) -> float:
        return self.clock.now

    def next_change_ms(self) -> float:
        """The earliest time at which, for all that is known now, another worker becomes active; infinity for never.

        Killing a draining worker changes nothing here: it is not active any more.
        """
        return min((startup.ready_ms for startup in self.startups.values()), default=math.inf)

    def apply_target(self, target: int) -> TargetEffect:
        """Scale to ``target`` workers (`Fleet.apply_target_count`), with the processes that belong to it."""
        fleet, now = self.fleet, self.clock.now
        effect = fleet.apply_target_count(target)
        if effect.cancelled:
            for worker_id in effect.cancelled:
                self.startups.pop(worker_id).cancel()
            self._close(effect.cancelled, FleetCause.CANCELLED)
        for worker_id in effect.added:
            self._open(fleet.workers[worker_id])
            delay_ms = fleet.startup_time_ms
            if delay_ms is None:
                self.router.worker_joined(worker_id)
            else:
                if self._options.startup_ms is not None:
                    delay_ms = self._options.startup_ms(worker_id)
                order = (now, self._instant.round, RoundStep.TICK, float(worker_id))
                self.startups[worker_id] = StartupProcess(
                    self.clock, worker_id, now + delay_ms, order, self._coordinator
                )
        if effect.added:
            self._note_fleet(FleetCause.ADDED, effect.added)
        for worker_id in effect.marked:
            self.router.worker_draining(worker_id)
        if effect.marked:
            self._note_fleet(FleetCause.MARKED, effect.marked)
        self._close(effect.removed, FleetCause.REMOVED)
        if self._options.drain_grace_ms is not None:
            for worker_id in effect.marked:
                if worker_id in fleet.workers:
                    self.clock.start(self._kill_after(worker_id, now + self._options.drain_grace_ms))
        return effect

    def remove_drained(self) -> bool:
        """Let the draining workers go that have nothing left to do; whether there were any."""
        removed = self.fleet.try_remove_drained()
        self._close(tuple(removed), FleetCause.REMOVED)
        return bool(removed)

    def startup_over(self, startup: StartupProcess) -> bool:
        """The startup of a worker is over; False when it was cancelled."""
        worker_id = startup.worker_id
        self.startups.pop(worker_id, None)
        if not self.fleet.mark_worker_ready(worker_id):
            return False
        self.router.worker_joined(worker_id)
        self._note_fleet(FleetCause.READY, (worker_id,))
        if self.tallies is not None:
            self.tallies[worker_id].ready_ms = self.clock.now
        return True

    def report_instant_startups(self) -> None:
        """A startup too short for the clock to tell is over in the next round of this very instant."""
        for startup in self.startups.values():
            if startup.ready_ms <= self.clock.now and not startup.is_reported:
                startup.is_reported = True
                self._instant.insert(startup.order, startup)

    def _kill_after(self, worker_id: int, at_ms: float) -> Generator[Event, None, None]:
        """Kill a draining worker if it still has something to do then."""
        yield self.clock.until(at_ms, Phase.KILL)
        if worker_id not in self.fleet.workers:
            return
        process, now = self.processes[worker_id], self.clock.now
        step = process.worker.step
        if step is not None and step.keep_ended(now):
            self.complete(process.worker, step)
        undelivered = list(process.inbox)
        self.inbox_count -= len(undelivered)
        process.inbox.clear()
        process.stop()
        lost = self.fleet.kill(worker_id, now)
        for request in undelivered:
            request.outcome = Outcome.FAILED
            request.ended_ms = now
        self._close((worker_id,), FleetCause.KILLED)
        self._requests_lost([*lost, *undelivered])

    def _open(self, worker: Worker) -> None:
        self._collector.watch(worker)
        if self.passes is not None:
            worker.scheduler.records_stats = True
        if self._publishes:
            worker.scheduler.publish_kv_events()
        self.processes[worker.id] = WorkerProcess(self.clock, worker, self._coordinator)
        if self.tallies is not None:
            self._open_tally(worker)

    def _close(self, worker_ids: tuple[int, ...], cause: FleetCause) -> None:
        if worker_ids:
            for worker_id in worker_ids:
                del self.processes[worker_id]
                self._may_publish.pop(worker_id, None)
                self.router.worker_removed(worker_id)
            self._note_fleet(cause, worker_ids)

    # ------------------------------------------------------------ work

    def hand_over(self, dispatches: Iterable[Dispatch]) -> bool:
        """Give requests to their workers, in this order; whether there were any."""
        now, fleet, any_at_all = self.clock.now, self.fleet, False
        for dispatch in dispatches:
            any_at_all = True
            process = self.interrupted(dispatch.worker_id)
            self.deliver(process, now)  # who came before stands before it
            fleet.dispatch(dispatch.worker_id, dispatch.request)
            if not self.router.hears_signals:
                dispatch.request.block_names = None  # its sequence has them now
            self._note_change(dispatch.worker_id)
            self.note_dispatch(dispatch)
        return any_at_all

    def note_dispatch(self, dispatch: Dispatch) -> None:
        """Note for whoever watches that a request has come to a worker."""
        if dispatch.hit_rate is not None and self.traffic is not None:
            self.traffic.routed(dispatch.hit_rate)
        if self.tallies is not None:
            self.tallies[dispatch.worker_id].dispatched(dispatch.request, self.clock.now)

    def interrupted(self, worker_id: int) -> WorkerProcess:
        """A worker to which something comes now: a stretch of it ends with the pass in progress."""
        process, now = self.processes[worker_id], self.clock.now
        if process.worker.step is not None:
            if self._instant.round == 1:  # a pass that ends now has ended before anything comes
                ended = process.end_at(now)
                if ended is not None:
                    self.complete(process.worker, ended)
            process.cut(math.nextafter(now, math.inf))
        return process

    def deliver(self, process: WorkerProcess, now_ms: float) -> None:
        """Let the requests of an inbox in that have arrived by now."""
        inbox, worker = process.inbox, process.worker
        while inbox and inbox[0].arrival_ms <= now_ms:
            self.inbox_count -= 1
            request = inbox.popleft()
            self.fleet.dispatch(worker.id, request)
            if self.tallies is not None:
                self.tallies[worker.id].dispatched(request, request.arrival_ms)

    def bring_up_to_date(self, worker_id: int) -> None:
        """Let the requests in that have arrived at a worker by now, as far as they are known in advance."""
        process = self.processes.get(worker_id)
        if process is not None and process.worker.step is not None:
            self.deliver(process, self.clock.now)

    def begin(self, process: WorkerProcess, step: Step, now_ms: float) -> None:
        """Wait for the end of a step that a worker has started at ``now_ms``, which is now."""
        step.order = (now_ms, self._instant.round, self._passes_step, float(process.worker.id))
        process.wake_at(step.ends_ms[-1])
        if self._boundaries_ms is not None and len(step.ends_ms) > 1:
            self._boundaries_ms.update(step.ends_ms)
            if len(self._boundaries_ms) > self._max_boundaries:
                self._forget_boundaries()
        self._note_change(process.worker.id)
        if self._publishes:
            self._may_publish[process.worker.id] = process.worker

    def complete(self, worker: Worker, step: Step) -> list[tuple[Request, bool]]:
        """A step has ended, or took no time: the requests that ended in it, with "was rejected"."""
        ended = self.fleet.complete(worker, step, self.clock.now)
        self._note_change(worker.id)
        if self._publishes:
            self._may_publish[worker.id] = worker
        self.note_completion(worker.id, step, ended)
        return ended

    def note_completion(self, worker_id: int, step: Step, ended: list[tuple[Request, bool]]) -> None:
        """Tell who asked of a step that has ended, with the requests that ended in it."""
        now = self.clock.now
        if self.passes is not None:
            self.passes.ended(worker_id, step, self.end_order(worker_id, step), now, self._instant.round)
        if self.tallies is not None:
            tally = self.tallies[worker_id]
            tally.passed(step)
            for request, _ in ended:
                tally.ended(request, now)

    def end_order(self, worker_id: int, step: Step) -> EventOrder:
        """Place of the end of the last pass of a step among the events of its time.

        Passes after the first begin in the first round of their instants.
        """
        if len(step.ends_ms) == 1:
            return step.order
        return (step.ends_ms[-2], 1, self._passes_step, float(worker_id))

    def index_boundaries(self) -> None:
        """From now on remember when passes inside stretches end: `cut_at_boundaries` will be called often."""
        self._boundaries_ms = set()

    def _forget_boundaries(self) -> None:
        """Keep only the ends of passes of steps in progress."""
        steps = (process.worker.step for process in self.processes.values())
        self._boundaries_ms = {end_ms for step in steps if step is not None for end_ms in step.ends_ms}
        self._max_boundaries = max(MAX_BOUNDARIES, 4 * len(self._boundaries_ms))

    def cut_at_boundaries(self, now_ms: float) -> None:
        """End every stretch with a pass that ends at ``now_ms``, so that its end is among what is due then."""
        if self._boundaries_ms is not None and now_ms not in self._boundaries_ms:
            return
        for process in self.processes.values():
            step = process.worker.step
            if step is not None and step.has_boundary_at(now_ms):
                process.cut(now_ms)

    def finish_at_cap(self, cap_ms: float) -> float | None:
        """Note the passes that have begun by the cap to their ends; they never complete.

        Returns:
            When the last of them began, in ms; None where no worker is busy.
        """
        last_ms: float | None = None
        for process in self.processes.values():
            worker, step = process.worker, process.worker.step
            if step is not None:
                process.cut(math.nextafter(cap_ms, math.inf))
                last_ms = max(last_ms or 0.0, step.last_start_ms)
                worker.scheduler.finish(step)
        return last_ms

    # ------------------------------------------------------------ lower cache tiers

    @property
    def has_lower_tiers(self) -> bool:
        """Whether the workers have cache tiers below the GPU."""
        return any(worker.scheduler.lower_tiers is not None for worker in self.fleet.workers.values())

    def poll_tiers(self) -> bool:
        """Let every worker find what has landed in its tiers; whether any of them found something (`spec 11, 4.1`)."""
        now, found = self.clock.now, False
        for worker in self.fleet.workers.values():
            scheduler = worker.scheduler
            tiers = scheduler.lower_tiers
            if tiers is not None and tiers.has_transfers and tiers.poll(now):
                found = True
                if self._publishes:
                    scheduler.kv_events_from_ms = min(scheduler.kv_events_from_ms, now)
                    self._may_publish[worker.id] = worker
        return found

    def lower_tiers_deadline_ms(self) -> float:
        """When a poll of a worker finds something next; infinity for never."""
        deadline_ms = math.inf
        for worker in self.fleet.workers.values():
            tiers = worker.scheduler.lower_tiers
            if tiers is not None and tiers.has_transfers:
                deadline_ms = min(deadline_ms, tiers.deadline_ms)
        return deadline_ms

    # ------------------------------------------------------------ who hears of it

    def observe_passes(self, passes: PassBuffer) -> None:
        """Collect forward-pass metrics of all workers, before anything is served."""
        self.passes = passes

    def pass_snapshots(self) -> list[dict[str, Any]]:
        """Forward-pass metrics of the passes that have ended since the last call."""
        if self.passes is None:
            return []
        for process in self.processes.values():
            step = process.worker.step
            if step is not None:
                self.passes.in_progress(process.worker.id, step, self._passes_step, self.clock.now)
        return self.passes.take()

    def keep_tallies(self, asked: frozenset[str] | None) -> dict[int, WorkerTally]:
        """From now on keep a `WorkerTally` of the metrics ``asked`` for, of every worker; keyed by id."""
        self.tallies = {}
        self._tallied = asked
        for worker in self.fleet.workers.values():
            self._open_tally(worker)
        return self.tallies

    def listen(self, listener: FleetListener) -> None:
        """Have ``listener`` called at every change of the fleet."""
        self._listener = listener

    def _open_tally(self, worker: Worker) -> None:
        assert self.tallies is not None
        ready_ms = None if worker.id in self.fleet.starting else self.clock.now
        self.tallies[worker.id] = TALLIES[self.fleet.stage](worker, self.clock.now, ready_ms, self._tallied)

    def _note_fleet(self, cause: FleetCause, worker_ids: tuple[int, ...]) -> None:
        fleet, now = self.fleet, self.clock.now
        if self._listener is not None:
            self._listener(cause, worker_ids, now)
            if cause is FleetCause.ADDED:
                ready = tuple(i for i in worker_ids if i not in fleet.starting)
                if ready:
                    self._listener(FleetCause.READY, ready, now)
        active, starting = len(fleet.active_worker_ids()), len(fleet.starting)
        draining = fleet.worker_count - active - starting
        self._collector.fleet_is(now, active, starting, draining, cause, worker_ids)
