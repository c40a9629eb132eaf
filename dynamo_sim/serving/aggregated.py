"""One fleet that does prefill and decode: the event loop of `spec 01, 5 to 10`."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any

from simpy.events import Event

from dynamo_sim.clock import Clock, Phase
from dynamo_sim.engine.step import FIRST_TOKEN, REJECTED, Step
from dynamo_sim.errors import SimulationError
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.fleet.processes import StartupProcess, WorkerProcess
from dynamo_sim.fleet.worker import Worker
from dynamo_sim.routing.router import Dispatch, Router
from dynamo_sim.serving.controller import MAX_IDLE_TICKS, Controller, is_due_later
from dynamo_sim.serving.instant import Instant
from dynamo_sim.serving.look_ahead import LookAhead
from dynamo_sim.serving.planner_metrics import PassBuffer, TrafficWindow
from dynamo_sim.serving.pool import Pool, PoolOptions
from dynamo_sim.serving.progress import Progress
from dynamo_sim.serving.tier_polls import TierPolls
from dynamo_sim.workload.request import Request
from dynamo_sim.workload.source import Source


class AggregatedServing:
    """Brings one pool of workers, a workload and a controller together on one clock.

    SimPy decides *when*: a process whose time has come reports here. The rounds of an instant decide in which *order*
    things happen that fall on it (`_settle`).

    Args:
        clock: the virtual clock, at 0.
        fleet: the workers.
        source: the workload.
        collector: takes the notes.
        router: decides which worker a request goes to.
        controller: decides about the size of the fleet, or None.
        options: how the fleet changes.
        max_passes: longest stretch of decode passes; 1 switches stretches off.
        cap_ms: nothing after this time happens; None for no cap.
        progress: called now and then with (virtual time in ms, requests ended).

    Attributes:
        pool: the fleet with its processes.
        killed_requests: requests that failed because their worker was killed.
        done: whether the run has come to its end.
    """

    def __init__(
        self,
        clock: Clock,
        fleet: Fleet,
        source: Source,
        collector: Collector,
        *,
        router: Router,
        controller: Controller | None = None,
        options: PoolOptions | None = None,
        max_passes: int = 1_000_000,
        cap_ms: float | None = None,
        progress: Callable[[float, int], None] | None = None,
    ) -> None:
        self.clock = clock
        self.source = source
        self.collector = collector
        self.router = router
        self.controller = controller
        self.cap_ms = math.inf if cap_ms is None else cap_ms
        self.killed_requests = 0
        self.done = False
        self._max_passes = max_passes
        self._progress = Progress(clock, progress)
        self._instant = Instant(clock, self._settle)
        self.pool = Pool(
            fleet,
            router,
            clock,
            self._instant,
            collector,
            self,
            requests_lost=self._requests_lost,
            options=options or PoolOptions(),
        )
        self._ahead = LookAhead(self.pool, source, self._instant, max_passes, self.cap_ms)
        self._looks_ahead = False
        self._polls = TierPolls(clock, (self.pool,), self._instant.wake)
        self._handled_ms = 0.0
        self._arrival_timer = clock.timer()
        self._arrival_ms: float | None = None
        self._tick_timer = clock.timer()
        self._tick_ms = math.inf
        self._tick_due = False
        self._ticks_begun = False
        self._idle_ticks = 0
        self._retries_matter = False
        self._someone_is_stuck = False
        self.traffic: TrafficWindow | None = None
        if controller is not None and controller.wants_passes:
            self.traffic = self.pool.traffic = TrafficWindow()
            self.pool.observe_passes(PassBuffer(self.traffic))

    def run(self) -> None:
        """Serve until everything has ended, or the cap.

        Raises:
            SimulationError: requests are left that nothing can ever finish, or a request finds no worker.
        """
        self.pool.open()
        self._retries_matter = any(w.scheduler.retries_matter for w in self.pool.fleet.workers.values())
        self._looks_ahead = (
            self.router.is_oblivious
            and not self.source.hears_endings
            and not self._retries_matter
            and not self._polls
        )
        self.clock.start(self._arrivals())
        self._instant.schedule()
        if self.cap_ms < math.inf:
            self.clock.start(self._stop_at_cap(self.cap_ms))
        self.clock.run_dry()
        if not self.done:
            self._refuse_dead_end()
        self.collector.worker_time_until(self._handled_ms)
        self.collector.records.end_ms = self._handled_ms

    # ------------------------------------------------------------ processes report

    def pass_due(self, process: WorkerProcess) -> None:
        """The step of a worker has ended, or a request of its inbox arrives."""
        now = self.clock.now
        if now >= self._ahead.horizon_ms:
            step = process.worker.step
            assert step is not None
            if self._only_a_pass_ends(now):
                self._settle_pass(process.worker, step)
            else:
                self._instant.report(self.pool.end_order(process.worker.id, step), process)
            return
        # The worker goes on alone: nothing else can happen to it before the horizon.
        self._handled_ms = now
        pool = self.pool
        ended = self._ahead.take_turn(process, now)
        if ended:
            if self.traffic is not None:
                self._note_traffic(ended)
            self._progress.ended(len(ended))
        if pool.fleet.draining:
            pool.remove_drained()
        if ended and not pool.fleet.in_flight and self._is_over():
            self._stop()

    def _only_a_pass_ends(self, now: float) -> bool:
        """Whether the end of the pass that reports is all that happens at this instant, whatever follows from it."""
        fleet, instant = self.pool.fleet, self._instant
        return not (
            instant
            or instant.is_scheduled
            or self._tick_due
            or self._looks_ahead
            or self._polls.are_due
            or self._retries_matter
            or fleet.draining
            or fleet.idle_with_work
            or self.source.hears_endings
            or self._arrival_ms == now
            or not self._ticks_begun
            or not self.clock.is_settled
        )

    def _settle_pass(self, worker: Worker, step: Step) -> None:
        """The rounds of an instant in which only a pass ends (`_settle`): the second one would change nothing."""
        self._handled_ms = self.clock.now
        self._instant.round = 1
        self._complete(worker, step)
        if self.pool.fleet.idle_with_work:
            self._start_passes()
            self._polls.arm()
        if not self.pool.fleet.in_flight and self._is_over():
            self._stop()

    def startup_due(self, process: StartupProcess) -> None:
        """The startup time of a worker is over (also of one that was cancelled meanwhile)."""
        if process.is_reported:
            return
        # The end of a startup can hold back completions of its instant: they must be there, not inside a stretch.
        self.pool.cut_at_boundaries(self.clock.now)
        self._instant.report(process.order, process)

    def _arrivals(self) -> Generator[Event, None, None]:
        clock, fleet, source = self.clock, self.pool.fleet, self.source
        while True:
            yield self._arrival_timer
            self._arrival_timer = clock.timer()
            self._arrival_ms = None
            if not self._retries_matter and self._is_alone():
                # Nothing else happens now: requests for busy workers just join their queues.
                self._handled_ms = clock.now
                self._instant.round = 1
                for request in source.take_due(clock.now, fleet.in_flight):
                    self._arrive(request)
                if not fleet.idle_with_work:
                    self._arm_arrivals()
                    continue
            self._instant.wake()

    def _is_alone(self) -> bool:
        """Whether the arrival that reports is all that happens at this instant, and nothing can follow from it."""
        return (
            not self._instant
            and not self._tick_due
            and not self._polls.are_due
            and not self._instant.is_scheduled
            and not self.source.hears_endings
            and not self.pool.fleet.draining
            and self.clock.is_settled
        )

    def _ticks(self) -> Generator[Event, None, None]:
        while True:
            yield self._tick_timer
            self._tick_timer = self.clock.timer()
            self._tick_ms = math.inf
            self._tick_due = True
            self._instant.wake()

    def _stop_at_cap(self, cap_ms: float) -> Generator[Event, None, None]:
        yield self.clock.until(cap_ms, Phase.CAP)
        if self._nothing_to_come():
            self._refuse_dead_end()
        begun_ms = self.pool.finish_at_cap(cap_ms)
        if begun_ms is not None:
            self._handled_ms = max(self._handled_ms, begun_ms, self._ahead.last_assigned_ms)
        self._stop()

    def _stop(self) -> None:
        self.done = True
        self.pool.close()
        self.clock.stop()

    # ------------------------------------------------------------ one instant

    def _settle(self) -> None:
        """The rounds of the present instant (`spec 01, 6`)."""
        pool, fleet, source, instant = self.pool, self.pool.fleet, self.source, self._instant
        now = self._handled_ms = self.clock.now
        instant.begin()
        changed = True
        while changed:
            instant.round += 1
            changed = bool(self._polls) and self._polls.poll()
            if instant:
                changed |= self._take_passes() | self._take_startups()
            next_ms = source.next_ms()
            if source.hears_endings or (next_ms is not None and next_ms <= now):
                for request in source.take_due(now, fleet.in_flight + self.router.queued_count):
                    self._arrive(request)
                    changed = True
            if fleet.idle_with_work:
                changed |= self._start_passes()
            if fleet.draining:
                changed |= pool.remove_drained()
            if self._tick_due and not instant and self.clock.is_settled:
                self._tick_due = False
                if not self._is_over():
                    self._tick()
                    pool.report_instant_startups()
                    changed = True
        if instant:
            # Held back by a cancelled startup in a round without change: the instant begins again.
            instant.schedule()
        elif not fleet.in_flight and self._is_over():
            self._stop()
        else:
            if not self._ticks_begun:
                self._begin_ticks()
            self._polls.arm()
            if self._looks_ahead:
                # A tick that still waits for its turn in this instant can change who is active, too.
                known = () if self.router.on_hold or self._tick_due else fleet.active_worker_ids()
                self.collector.records.requests += self._ahead.hand_out(known, self._tick_ms)
            self._arm_arrivals()

    def _take_passes(self) -> bool:
        """The completions at the head of what is due."""
        changed = False
        while (process := self._instant.take(WorkerProcess)) is not None:
            worker, step = process.worker, process.worker.step
            assert step is not None
            self._complete(worker, step)
            self.pool.deliver(process, self.clock.now)
            changed = True
        return changed

    def _take_startups(self) -> bool:
        """The ready events at the head of what is due; those of cancelled startups change nothing."""
        changed = False
        while (startup := self._instant.take(StartupProcess)) is not None:
            if self.pool.startup_over(startup):
                self.pool.hand_over(self.router.release(self.pool, self.clock.now))
                changed = True
        return changed

    def _start_passes(self) -> bool:
        """Start every pass that can start."""
        pool, fleet, now = self.pool, self.pool.fleet, self.clock.now
        changed = False
        max_passes = 1 if self._someone_is_stuck else self._max_passes
        while True:
            if self._polls and self._polls.deadline_ms < math.inf:
                max_passes = 1
            completion = fleet.drive_ready(now, max_passes, self.collector)
            if completion is None:
                break
            worker, step = fleet.workers[completion.worker_id], completion.step
            pool.driven_id = worker.id
            if completion.immediate:
                self._complete(worker, step)
            else:
                pool.begin(pool.processes[worker.id], step, now)
            changed = True
        pool.driven_id = -1
        if self._retries_matter and self._someone_is_stuck != bool(fleet.idle_with_work):
            # A worker that cannot go on is tried again at every instant of the fleet: none may be skipped.
            self._someone_is_stuck = not self._someone_is_stuck
            for process in pool.processes.values():
                process.cut(now)
        return changed

    def _arrive(self, request: Request) -> None:
        self.collector.arrived(request)
        dispatches = self.router.submit(request, self.pool, self.clock.now)
        if dispatches:
            self.pool.hand_over(dispatches)
        elif self._ticks_begun and (self.router.on_hold or not self.pool.active_worker_ids()):
            self._ask_earlier()

    def _complete(self, worker: Worker, step: Step) -> None:
        """All consequences of the end of a step (`spec 01, 6.2`), one output signal after the other."""
        pool, router, now = self.pool, self.router, self.clock.now
        ended = pool.complete(worker, step)
        if not router.hears_signals:
            if ended:
                self._leave(ended)
            return
        for request, kind in step.signals:
            if kind is FIRST_TOKEN:
                pool.hand_over(router.prefill_completed(request, pool, now))
            else:
                released = router.freed(request, pool, now)
                self._leave([(request, kind is REJECTED)])
                pool.hand_over(released)

    def _leave(self, ended: list[tuple[Request, bool]]) -> None:
        """Requests have left the fleet, in this order, each with "was rejected"."""
        if self.traffic is not None:
            self._note_traffic(ended)
        if self.source.hears_endings:
            for request, rejected in ended:
                self.source.ended(request, self.clock.now, rejected)
        self._progress.ended(len(ended))

    def _note_traffic(self, ended: list[tuple[Request, bool]]) -> None:
        assert self.traffic is not None
        for request, rejected in ended:
            if not rejected:
                self.traffic.completed(request)

    def _requests_lost(self, requests: list[Request]) -> None:
        """Requests of a killed worker have failed."""
        now = self.clock.now
        released: list[Dispatch] = []
        for request in requests:
            if self.router.hears_signals:
                released += self.router.freed(request, self.pool, now)
            if self.source.hears_endings:
                self.source.ended(request, now, rejected=True)
        self.killed_requests += len(requests)
        self._progress.ended(len(requests))
        self.pool.hand_over(released)
        self._instant.schedule()

    def _arm_arrivals(self) -> None:
        next_ms = self.source.next_ms()
        if next_ms is None or (self._looks_ahead and self.clock.now < self._ahead.horizon_ms < next_ms):
            return
        if self._arrival_ms is None:
            self._arrival_ms = next_ms
            self._arrival_timer.arm(next_ms)
        elif next_ms < self._arrival_ms:
            self._arrival_ms = next_ms
            self._arrival_timer = self._arrival_timer.moved_to(next_ms)

    # ------------------------------------------------------------ scaling

    def _begin_ticks(self) -> None:
        self._ticks_begun = True
        if self.controller is None:
            return
        first = self.controller.first_tick_ms()
        if first is not None and math.isfinite(first):
            self.clock.start(self._ticks())
            self._arm_tick(max(first, self.clock.now))
        else:
            self._end_ticks()

    def _arm_tick(self, at_ms: float) -> None:
        self._tick_ms = at_ms
        self._tick_timer.arm(at_ms)

    def _ask_earlier(self) -> None:
        """Let the controller be asked earlier, if it wants to, for a request that waits for a worker."""
        asked_ms = None if self.controller is None else self.controller.request_waits(self.clock.now)
        if asked_ms is not None and asked_ms < self._tick_ms:
            self._tick_ms = asked_ms
            self._tick_timer = self._tick_timer.moved_to(asked_ms)

    def _tick(self) -> None:
        assert self.controller is not None
        now = self.clock.now
        next_ms = self.controller.on_tick(now, self)
        released = self.pool.hand_over(self.router.release(self.pool, now))
        if next_ms is not None and is_due_later(next_ms, now):
            if not released and self._nothing_to_come():
                self._refuse_dead_end()
            self._check_idle_ticks()
            self._arm_tick(next_ms)
        else:
            self._end_ticks()

    def _end_ticks(self) -> None:
        self.traffic = self.pool.traffic = self.pool.passes = None

    def apply_targets(self, prefill: int | None, decode: int | None) -> None:
        """Scale to ``decode`` workers; there is no prefill fleet."""
        if decode is not None:
            self.pool.apply_target(decode)

    def metrics(self) -> dict[str, Any]:
        """What the fleet shows a planner now; empties the buffers."""
        now, fleet = self.clock.now, self.pool.fleet
        return {
            "now_ms": now,
            "prefill_fpm_snapshots": [],
            "decode_fpm_snapshots": self.pool.pass_snapshots(),
            "active_prefill_count": 0,
            "active_decode_count": len(fleet.active_worker_ids()),
            "total_prefill_count": 0,
            "total_decode_count": fleet.worker_count,
            "traffic": {} if self.traffic is None else self.traffic.take(now),
        }

    def idle_until_ms(self) -> float | None:
        """When the next request arrives, in ms; None while there is something to do, or where it is not known."""
        return None if self.pool.is_working else self.source.next_ms()

    # ------------------------------------------------------------ the end

    def _is_over(self) -> bool:
        """Whether nothing is in progress, in flight or to come (`spec 01, 7`)."""
        return not self.pool.is_working and self.source.exhausted() and self.pool.fleet.is_drained

    def _nothing_to_come(self) -> bool:
        """Whether requests are left but nothing can set anything going again."""
        return (
            not self._is_over()
            and not self.pool.fleet.busy_count
            and not self.pool.startups
            and self._polls.deadline_ms == math.inf
            and not self._instant
            and not self.pool.inbox_count
            and not self.router.queued_count
            and self.source.next_ms() is None
        )

    def _check_idle_ticks(self) -> None:
        """Fail after `MAX_IDLE_TICKS` ticks with queued requests and no worker that becomes ready."""
        queued = self.router.queued_count
        waits = queued and not self.pool.fleet.busy_count and self.source.next_ms() is None
        self._idle_ticks = self._idle_ticks + 1 if waits else 0
        if self._idle_ticks > MAX_IDLE_TICKS:
            raise SimulationError(
                f"{queued} requests wait for a worker, and none has become ready in {MAX_IDLE_TICKS:,} evaluations "
                "of the policy: it orders none, or takes them back before their startup is over; allow it to scale up "
                "from 0, or keep at least one worker"
            )

    def _refuse_dead_end(self) -> None:
        if self.router.queued_count and not self.pool.fleet.in_flight:
            raise SimulationError(
                f"{self.router.queued_count} requests wait for a worker, and nothing will bring one: the policy has "
                "stopped looking, or was never going to scale up from 0; keep at least one worker"
            )
        raise SimulationError(self.pool.fleet.dead_end(self.router.queued_count))
