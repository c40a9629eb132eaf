"""A prefill fleet, a decode fleet, and the handoff between them: the loop of `spec 07`."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any

from simpy.events import Event

from dynamo_sim.clock import Clock, Phase
from dynamo_sim.engine.step import FIRST_TOKEN, REJECTED, Step
from dynamo_sim.errors import SimulationError
from dynamo_sim.fleet.processes import StartupProcess, WorkerProcess
from dynamo_sim.fleet.worker import Worker
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.serving.alarm import Alarm
from dynamo_sim.serving.controller import MAX_IDLE_TICKS, Controller, is_due_later
from dynamo_sim.serving.handoff_dead_end import dead_end
from dynamo_sim.serving.handoff_flow import HandoffFlow
from dynamo_sim.serving.instant import Instant
from dynamo_sim.serving.planner_metrics import PassBuffer, TrafficWindow
from dynamo_sim.serving.progress import Progress
from dynamo_sim.serving.side import FleetSide, SideParts
from dynamo_sim.serving.tier_polls import TierPolls
from dynamo_sim.serving.transfer import TransferTiming
from dynamo_sim.workload.request import Request
from dynamo_sim.workload.source import Source


class DisaggregatedServing:
    """Brings two pools of workers, a workload and a controller together on one clock.

    As for one fleet, SimPy decides when, and the rounds of an instant decide in which order (`_settle`). What a handoff
    needs next is carried out by a `HandoffFlow`.

    Args:
        clock: the virtual clock, at 0.
        prefill, decode: the two fleets. Requests are noted by the collector of the decode fleet.
        source: the workload.
        interner: names the blocks of prompts; both fleets use the same one.
        timing: how long transfers take.
        source_first: whether prompts are computed before a decode worker is chosen (vLLM), or after (SGLang).
        links: transfers of one prefill worker at the same time; None for any number.
        controller: decides about the size of the fleets, or None.
        max_passes: longest stretch of decode passes; 1 switches stretches off.
        cap_ms: nothing after this time happens; None for no cap.
        progress: called now and then with (virtual time in ms, requests ended).

    Attributes:
        killed_requests: requests that failed because a worker was killed.
        done: whether the run has come to its end.
    """

    def __init__(
        self,
        clock: Clock,
        prefill: SideParts,
        decode: SideParts,
        source: Source,
        *,
        interner: PrefixInterner,
        timing: TransferTiming,
        source_first: bool,
        links: int | None = None,
        controller: Controller | None = None,
        max_passes: int = 1_000_000,
        cap_ms: float | None = None,
        progress: Callable[[float, int], None] | None = None,
    ) -> None:
        self.clock = clock
        self.source = source
        self.controller = controller
        self.killed_requests = 0
        self.done = False
        self._instant = Instant(clock, self._settle)
        self.prefill, self.decode = (
            FleetSide(
                parts,
                clock,
                self._instant,
                before_event=self._cut_at_boundaries,
                requests_lost=self._requests_lost,
            )
            for parts in (prefill, decode)
        )
        self._sides = (self.prefill, self.decode)
        self._polls = TierPolls(clock, (self.prefill.pool, self.decode.pool), self._instant.wake)
        self._in_system = 0  # requests that have arrived and have not ended
        self._flow = HandoffFlow(
            clock,
            self._instant,
            self.prefill,
            self.decode,
            interner=interner,
            timing=timing,
            source_first=source_first,
            links=links,
            routers_queue=controller is not None and controller.waits_for_workers,
            request_waits=self._ask_earlier,
            before_event=self._cut_at_boundaries,
            failed=lambda request: self._leave(request, rejected=True),
        )
        self._max_passes = max_passes
        self._cap_ms = math.inf if cap_ms is None else cap_ms
        self._progress = Progress(clock, progress)
        self._handled_ms = 0.0
        self._arrivals = Alarm(clock, self._instant.wake)
        self._ticks = Alarm(clock, self._tick_rings)
        self._tick_due = False
        self._ticks_begun = False
        self._idle_ticks = 0  # in a row, with requests that wait for a worker
        self.traffic: TrafficWindow | None = None
        if controller is not None and controller.wants_passes:
            self.traffic = self.prefill.pool.traffic = TrafficWindow()
            self.prefill.pool.observe_passes(PassBuffer(TrafficWindow()))  # its tokens are no traffic
            self.decode.pool.observe_passes(PassBuffer(self.traffic))

    def run(self) -> None:
        """Serve until everything has ended, or the cap.

        Raises:
            SimulationError: requests are left that nothing can ever finish, or a transfer never ends.
        """
        for side in self._sides:
            side.pool.open()
        self._instant.schedule()
        if self._cap_ms < math.inf:
            self.clock.start(self._stop_at_cap())
        self.clock.run_dry()
        if not self.done:
            self._refuse_dead_end()
        for side in self._sides:
            side.collector.worker_time_until(self._handled_ms)
            side.collector.records.end_ms = self._handled_ms

    # ------------------------------------------------------------ processes report

    def _cut_at_boundaries(self) -> None:
        """An event of this instant can hold back passes that end now: they must be there, not inside a stretch."""
        for side in self._sides:
            side.pool.cut_at_boundaries(self.clock.now)

    def _tick_rings(self) -> None:
        self._tick_due = True
        self._instant.wake()

    def _stop_at_cap(self) -> Generator[Event, None, None]:
        yield self.clock.until(self._cap_ms, Phase.CAP)
        if self._nothing_to_come() and self._ticks.at_ms == math.inf:
            self._refuse_dead_end()
        for side in self._sides:
            begun_ms = side.pool.finish_at_cap(self._cap_ms)
            if begun_ms is not None:
                self._handled_ms = max(self._handled_ms, begun_ms)
        self._stop()

    def _stop(self) -> None:
        self.done = True
        for side in self._sides:
            side.pool.close()
        self.clock.stop()

    # ------------------------------------------------------------ one instant

    def _settle(self) -> None:
        """The rounds of the present instant (`spec 07, 6`)."""
        source, instant, flow = self.source, self._instant, self._flow
        prefills, decodes = self.prefill.pool.fleet, self.decode.pool.fleet
        hears_endings = source.hears_endings
        now = self._handled_ms = self.clock.now
        instant.begin()
        changed = True
        while changed:
            instant.round += 1
            changed = bool(self._polls) and self._poll_tiers()
            if instant:
                changed |= self._take_passes() | self._take_startups() | flow.take_transfers()
            if (
                self._arrivals.at_ms == math.inf or hears_endings
            ):  # the alarm has rung, or what ends brings the next
                for request in source.take_due(now, self._in_system):
                    self._arrive(request)
            if flow.actions:
                flow.carry_out()
                changed = True
            if prefills.idle_with_work:
                changed |= self._start_passes(self.prefill)
            if decodes.idle_with_work:
                changed |= self._start_passes(self.decode)
            if prefills.draining or decodes.draining:
                changed |= self.prefill.pool.remove_drained() | self.decode.pool.remove_drained()
            if self._tick_due and not instant and self.clock.is_settled:
                self._tick_due = False
                if not self._is_over():
                    self._tick()
                    for side in self._sides:
                        side.pool.report_instant_startups()
                    changed = True
        if instant:
            instant.schedule()  # held back by a cancelled startup in a round without change
        elif not self._in_system and self._is_over():
            self._stop()
        else:
            if not self._ticks_begun:
                self._begin_ticks()
            self._polls.arm()
            if self._arrivals.at_ms == math.inf or hears_endings:
                next_ms = source.next_ms()
                if next_ms is not None:
                    self._arrivals.set_by(next_ms)

    def _poll_tiers(self) -> bool:
        """Let every worker poll its lower cache tiers; an idle one then tries its first destination again."""
        found = self._polls.poll()
        for worker in list(self.decode.pool.fleet.workers.values()):
            if not worker.busy and worker.scheduler.handoffs.attempt_is_due:
                self._flow.note_reserved(self.decode.attempt(worker.id))
        return found

    def _take_passes(self) -> bool:
        """The completions at the head of what is due."""
        changed = False
        while (process := self._instant.take(WorkerProcess)) is not None:
            worker, step = process.worker, process.worker.step
            assert step is not None
            side = process.coordinator
            assert isinstance(side, FleetSide)
            self._complete(side, worker, step)
            changed = True
        return changed

    def _take_startups(self) -> bool:
        """The ready events at the head of what is due; those of cancelled startups change nothing."""
        changed = False
        while (startup := self._instant.take(StartupProcess)) is not None:
            side = startup.coordinator
            assert isinstance(side, FleetSide)
            if side.pool.startup_over(startup):
                self._flow.actions += side.next_tasks()
                self._flow.dispatch(side, side.router.release(side.pool, self.clock.now))
                changed = True
        return changed

    def _start_passes(self, side: FleetSide) -> bool:
        """Start every pass of a fleet that can start."""
        pool, fleet, now = side.pool, side.pool.fleet, self.clock.now
        changed = False
        max_passes = 1 if self.prefill.stuck or self.decode.stuck else self._max_passes
        while True:
            if self._polls and self._polls.deadline_ms < math.inf:
                max_passes = 1
            completion = fleet.drive_ready(now, max_passes, side.collector)
            if completion is None:
                break
            worker, step = fleet.workers[completion.worker_id], completion.step
            pool.driven_id = worker.id
            if completion.immediate:
                self._complete(side, worker, step)
            else:
                pool.begin(pool.processes[worker.id], step, now)
            changed = True
        pool.driven_id = -1
        stuck = any(fleet.workers[worker_id].scheduler.retries_matter for worker_id in fleet.idle_with_work)
        if stuck != side.stuck:
            # A worker that cannot go on is tried again at every instant of both fleets: none may be skipped.
            side.stuck = stuck
            for process in (*self.prefill.pool.processes.values(), *self.decode.pool.processes.values()):
                process.cut(now)
        return changed

    def _arrive(self, request: Request) -> None:
        self.decode.collector.arrived(request)
        self._in_system += 1
        self._flow.arrived(request)

    # ------------------------------------------------------------ passes end

    def _complete(self, side: FleetSide, worker: Worker, step: Step) -> None:
        """All consequences of the end of a step (`spec 07, 6.1`)."""
        side.pool.complete(worker, step)
        reserved = None
        if side is self.decode:
            reserved = self.decode.attempt(worker.id)
        if side.deferred:
            self._flow.actions += side.deferred.pop(worker.id, ())
        if side is self.decode:
            for request, kind in step.signals:
                if kind is not FIRST_TOKEN:
                    self._decoded(request, rejected=kind is REJECTED)
            if reserved is not None:
                self._flow.note_reserved(reserved)
        elif step.signals:
            self._flow.prefilled(step)

    def _decoded(self, request: Request, rejected: bool) -> None:
        """A request has its last token."""
        released = self._flow.decoded(request)
        if self.traffic is not None and not rejected:
            self.traffic.completed(request)
        self._leave(request, rejected)
        self._flow.dispatch(self.decode, released)

    def _leave(self, request: Request, rejected: bool) -> None:
        """A request leaves the system: its slot and its session go on."""
        self._in_system -= 1
        if self.source.hears_endings:
            self.source.ended(request, self.clock.now, rejected)
        self._progress.ended(1)

    # ------------------------------------------------------------ kills

    def _requests_lost(self, side: FleetSide, requests: list[Request]) -> None:
        """Requests of a killed worker have failed, unless what they need next is elsewhere by now."""
        for worker_id in [i for i in side.deferred if i not in side.pool.processes]:
            self._flow.actions += side.deferred.pop(worker_id)  # they find that it is gone
        for request in requests:
            fails = self._flow.worker_lost(side, request)
            if fails is None and side is self.decode:
                self._decoded(request, rejected=True)
                fails = True
            self.killed_requests += bool(fails)
        self._instant.schedule()

    # ------------------------------------------------------------ scaling

    def _begin_ticks(self) -> None:
        self._ticks_begun = True
        if self.controller is None:
            return
        first = self.controller.first_tick_ms()
        if first is not None and math.isfinite(first):
            self._ticks.set_by(max(first, self.clock.now))
        else:
            self._end_ticks()

    def _tick(self) -> None:
        assert self.controller is not None
        now = self.clock.now
        next_ms = self.controller.on_tick(now, self)
        for side in self._sides:
            self._flow.actions += side.next_tasks()
            self._flow.dispatch(side, side.router.release(side.pool, now))
        if next_ms is not None and is_due_later(next_ms, now):
            if self._nothing_to_come() and not any(side.waiting_count for side in self._sides):
                self._refuse_dead_end()
            self._check_idle_ticks()
            self._ticks.set_by(next_ms)
        else:
            self._end_ticks()

    def _ask_earlier(self) -> None:
        """Let the controller be asked earlier, if it wants to, for a request that waits for a worker."""
        asked_ms = None if self.controller is None else self.controller.request_waits(self.clock.now)
        if asked_ms is not None:
            self._ticks.set_by(asked_ms)

    def _end_ticks(self) -> None:
        self.traffic = self.prefill.pool.traffic = None
        for side in self._sides:
            side.pool.passes = None

    def apply_targets(self, prefill: int | None, decode: int | None) -> None:
        """Scale both fleets; one without a target is set to all workers that it has now (`spec 07, 11`)."""
        if prefill is None and decode is None:
            return
        for side, target in ((self.prefill, prefill), (self.decode, decode)):
            side.pool.apply_target(side.pool.fleet.worker_count if target is None else target)
            self._flow.actions += side.next_tasks()

    def metrics(self) -> dict[str, Any]:
        """What the fleets show a planner now; empties the buffers."""
        shown: dict[str, Any] = {"now_ms": self.clock.now}
        for name, side in (("prefill", self.prefill), ("decode", self.decode)):
            shown[f"{name}_fpm_snapshots"] = side.pool.pass_snapshots()
            shown[f"active_{name}_count"] = len(side.pool.active_worker_ids())
            shown[f"total_{name}_count"] = side.pool.fleet.worker_count
        shown["traffic"] = {} if self.traffic is None else self.traffic.take(self.clock.now)
        return shown

    def idle_until_ms(self) -> float | None:
        """When the next request arrives, in ms; None while there is something to do, or where it is not known."""
        return None if self._in_system or self._flow.live else self.source.next_ms()

    # ------------------------------------------------------------ the end

    def _is_over(self) -> bool:
        """Whether nothing is in progress, in flight or to come (`spec 07, 14`)."""
        return (
            not self._in_system
            and not self._flow.live
            and not self._flow.transfers
            and not any(side.pool.is_working for side in self._sides)
            and self.source.exhausted()
            and all(side.pool.fleet.is_drained for side in self._sides)
        )

    def _nothing_to_come(self) -> bool:
        """Whether requests are left but nothing can set anything going again."""
        return (
            not self._is_over()
            and not self._flow.transfers
            and not self._flow.actions
            and not self._instant
            and not any(side.pool.fleet.busy_count or side.pool.startups for side in self._sides)
            and self._polls.deadline_ms == math.inf
            and self.source.next_ms() is None
        )

    def _check_idle_ticks(self) -> None:
        """Fail after `MAX_IDLE_TICKS` ticks with requests that wait for a worker, and none that becomes ready."""
        waits = any(side.waiting_count for side in self._sides)
        works = self._flow.transfers or any(side.pool.fleet.busy_count for side in self._sides)
        self._idle_ticks = (
            self._idle_ticks + 1 if waits and not works and self.source.next_ms() is None else 0
        )
        if self._idle_ticks > MAX_IDLE_TICKS:
            name, count = next(
                (side.collector.fleet.name, side.waiting_count) for side in self._sides if side.waiting_count
            )
            raise SimulationError(
                f"{count} requests wait for a {name} worker, and none has become ready in {MAX_IDLE_TICKS:,} "
                "evaluations of the policy: it orders none, or takes them back before their startup is over; allow it "
                "to scale up from 0, or keep at least one worker"
            )

    def _refuse_dead_end(self) -> None:
        raise dead_end(self.prefill, self.decode, self._in_system)
