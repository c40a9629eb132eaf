"""A prefill fleet, a decode fleet, and the handoff between them: the loop of `spec 07`."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any

from simpy.events import Event

from dynamo_sim.clock import Clock, Phase
from dynamo_sim.engine.handoff import Reserved
from dynamo_sim.engine.step import FIRST_TOKEN, REJECTED, Step
from dynamo_sim.errors import SimulationError
from dynamo_sim.fleet.processes import StartupProcess, WorkerProcess
from dynamo_sim.fleet.worker import Worker
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.routing.router import Dispatch
from dynamo_sim.serving.alarm import Alarm
from dynamo_sim.serving.controller import MAX_IDLE_TICKS, Controller, is_due_later
from dynamo_sim.serving.handoff import DESTINATION_FIRST, SOURCE_FIRST, Action, Fact, Handoff
from dynamo_sim.serving.handoff_dead_end import dead_end
from dynamo_sim.serving.instant import Instant, RoundStep
from dynamo_sim.serving.planner_metrics import PassBuffer, TrafficWindow
from dynamo_sim.serving.progress import Progress
from dynamo_sim.serving.side import FleetSide, SideParts, Task
from dynamo_sim.serving.tier_polls import TierPolls
from dynamo_sim.serving.transfer import Links, TransferProcess, TransferTiming
from dynamo_sim.workload.request import Request
from dynamo_sim.workload.source import Source


class DisaggregatedServing:
    """Brings two pools of workers, a workload and a controller together on one clock.

    As for one fleet, SimPy decides when, and the rounds of an instant decide in which order (`_settle`). What a handoff
    needs next goes through one queue of actions (`_carry_out`).

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
        self._interner = interner
        self._timing = timing
        self._links = Links(links)
        self._order = SOURCE_FIRST if source_first else DESTINATION_FIRST
        self._handoffs: dict[Request, Handoff] = {}  # those that are not complete
        self._in_system = 0  # requests that have arrived and have not ended
        self._transfers = 0  # in progress
        self._transfer_count = 0  # of all transfers that took time
        self._actions: deque[Task] = deque()
        self._execute = {
            Action.SUBMIT_PREFILL: self._submit_prefill,
            Action.RESERVE_DESTINATION: self._reserve_destination,
            Action.START_TRANSFER: self._start_transfer,
            Action.ACTIVATE_DESTINATION: self._activate_destination,
            Action.RELEASE_SOURCE: self._release_source,
            Action.COMPLETE: self._complete_handoff,
            Action.CANCEL_SOURCE: self._cancel_source,
            Action.CANCEL_DESTINATION: self._cancel_destination,
            Action.FAIL: self._fail,
        }
        self._max_passes = max_passes
        self._cap_ms = math.inf if cap_ms is None else cap_ms
        self._progress = Progress(clock, progress)
        self._handled_ms = 0.0
        self._arrivals = Alarm(clock, self._instant.wake)
        self._ticks = Alarm(clock, self._tick_rings)
        self._tick_due = False
        self._ticks_begun = False
        self._idle_ticks = 0  # in a row, with requests that wait for a worker
        self._routers_queue = controller is not None and controller.waits_for_workers
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

    def transfer_due(self, process: TransferProcess) -> None:
        """A transfer is done."""
        self._cut_at_boundaries()
        self._instant.report(process.order, process)

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
        source, instant, actions = self.source, self._instant, self._actions
        prefills, decodes = self.prefill.pool.fleet, self.decode.pool.fleet
        hears_endings = source.hears_endings
        now = self._handled_ms = self.clock.now
        instant.begin()
        changed = True
        while changed:
            instant.round += 1
            changed = bool(self._polls) and self._poll_tiers()
            if instant:
                changed |= self._take_passes() | self._take_startups() | self._take_transfers()
            if (
                self._arrivals.at_ms == math.inf or hears_endings
            ):  # the alarm has rung, or what ends brings the next
                for request in source.take_due(now, self._in_system):
                    self._arrive(request)
            if actions:
                self._carry_out()
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
                self._note_reserved(worker.scheduler.handoffs.attempt())
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
                self._actions += side.next_tasks()
                self._dispatch(side, side.router.release(side.pool, self.clock.now))
                changed = True
        return changed

    def _take_transfers(self) -> bool:
        """The transfers at the head of what is due."""
        changed = False
        while (transfer := self._instant.take(TransferProcess)) is not None:
            self._transfers -= 1
            self._transferred(transfer.handoff)
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
        if request.content is not None:
            request.block_names = self._interner.names_of(request)  # both fleets ask for them
        handoff = self._handoffs[request] = Handoff(request, self._order)
        request.handoff = handoff.milestones
        self._actions.append((handoff.start(), handoff))

    # ------------------------------------------------------------ passes end

    def _complete(self, side: FleetSide, worker: Worker, step: Step) -> None:
        """All consequences of the end of a step (`spec 07, 6.1`)."""
        side.pool.complete(worker, step)
        reserved = None
        if side is self.decode:
            reserved = worker.scheduler.handoffs.attempt()
        if side.deferred:
            self._actions += side.deferred.pop(worker.id, ())
        if side is self.decode:
            for request, kind in step.signals:
                if kind is not FIRST_TOKEN:
                    self._decoded(request, rejected=kind is REJECTED)
            if reserved is not None:
                self._note_reserved(reserved)
        elif step.signals:
            self._prefilled(step)

    def _prefilled(self, step: Step) -> None:
        """Prompts are computed, or refused."""
        side, now = self.prefill, self.clock.now
        held = []
        for request, kind in step.signals:
            handoff = self._handoffs[request]
            if kind is REJECTED:
                self._note(handoff, Fact.REJECTED)
            elif kind is not FIRST_TOKEN:
                handoff.milestones.source_held_ms = now
                if side.router.hears_signals:
                    self._dispatch(side, side.router.prefill_completed(request, side.pool, now))
                held.append(handoff)
        for handoff in held:
            self._timing.delay_ms(handoff.request.input_tokens)  # refuses what would never arrive
            self._note(handoff, Fact.HELD)

    def _decoded(self, request: Request, rejected: bool) -> None:
        """A request has its last token."""
        side, now = self.decode, self.clock.now
        released: Iterable[Dispatch] = ()
        if side.router.hears_signals:
            released = side.router.freed(request, side.pool, now)
        if self.traffic is not None and not rejected:
            self.traffic.completed(request)
        self._leave(request, rejected)
        self._dispatch(side, released)

    def _leave(self, request: Request, rejected: bool) -> None:
        """A request leaves the system: its slot and its session go on."""
        self._in_system -= 1
        if self.source.hears_endings:
            self.source.ended(request, self.clock.now, rejected)
        self._progress.ended(1)

    # ------------------------------------------------------------ actions

    def _carry_out(self) -> None:
        """Carry out all actions, and those that follow from them."""
        actions, execute = self._actions, self._execute
        while actions:
            action, handoff = actions.popleft()
            execute[action](handoff)

    def _note(self, handoff: Handoff, fact: Fact) -> None:
        """Tell a handoff what has happened to it, and queue what it asks for."""
        failed_before = handoff.failure
        for action in handoff.note(fact):
            self._actions.append((action, handoff))
        request = handoff.request
        if handoff.failure is not failed_before and request.outcome is None:
            request.outcome = handoff.failure
            request.ended_ms = self.clock.now

    def _submit_prefill(self, handoff: Handoff) -> None:
        self._ask_router(self.prefill, (Action.SUBMIT_PREFILL, handoff))

    def _reserve_destination(self, handoff: Handoff) -> None:
        self._ask_router(self.decode, (Action.RESERVE_DESTINATION, handoff))

    def _ask_router(self, side: FleetSide, task: Task) -> None:
        """Have a worker chosen, or wait until one is active."""
        if not side.pool.active_worker_ids() and not self._routers_queue:
            side.waiting.append(task)
            return
        dispatches = side.router.submit(task[1].request, side.pool, self.clock.now)
        if self._routers_queue and not dispatches and self.controller is not None:
            asked_ms = self.controller.request_waits(self.clock.now)
            if asked_ms is not None:
                self._ticks.set_by(asked_ms)
        self._dispatch(side, dispatches)

    def _dispatch(self, side: FleetSide, dispatches: Iterable[Dispatch]) -> None:
        """Requests have a worker."""
        for dispatch in dispatches:
            handoff = self._handoffs[dispatch.request]
            if handoff.failure is not None:
                continue  # it has waited in the router for longer than its other side was there
            if side is self.prefill:
                self._submit_to(handoff, dispatch)
            else:
                self._reserve_at(handoff, dispatch.worker_id)

    def _submit_to(self, handoff: Handoff, dispatch: Dispatch) -> None:
        side, request, milestones = self.prefill, handoff.request, handoff.milestones
        side.pool.interrupted(dispatch.worker_id)
        side.commands.submit_prefill(dispatch.worker_id, request)
        side.pool.note_dispatch(dispatch)
        milestones.prefill_worker_id = dispatch.worker_id
        milestones.prefill_overlap_tokens = 0
        if dispatch.hit_rate:
            size = self._interner.block_size
            blocks = round(dispatch.hit_rate * -(-request.input_tokens // size))
            milestones.prefill_overlap_tokens = min(blocks * size, request.input_tokens)

    def _reserve_at(self, handoff: Handoff, worker_id: int) -> None:
        side, request, milestones = self.decode, handoff.request, handoff.milestones
        milestones.decode_overlap_tokens = 0
        worker = side.pool.interrupted(worker_id).worker
        if not side.commands.reserve_destination(worker_id, request):
            self._note(handoff, Fact.REFUSED)
            return
        side.pool.note_dispatch(Dispatch(request, worker_id))
        milestones.decode_worker_id = request.worker_id = worker_id
        if not worker.busy:
            self._note_reserved(side.commands.attempt(worker_id))

    def _note_reserved(self, reserved: Reserved | None) -> None:
        if reserved is not None:
            handoff = self._handoffs[reserved.request]
            handoff.missing_tokens = reserved.missing_tokens
            handoff.milestones.destination_reserved_ms = self.clock.now
            self._note(handoff, Fact.RESERVED)

    def _start_transfer(self, handoff: Handoff) -> None:
        now, timing, milestones = self.clock.now, self._timing, handoff.milestones
        milestones.transfer_started_ms = now
        milestones.transfer_tokens = timing.tokens(handoff)
        delay_ms = timing.delay_ms(milestones.transfer_tokens)
        if delay_ms <= 0:
            self._transferred(handoff)
            return
        assert milestones.prefill_worker_id is not None
        start_ms = self._links.start_ms(milestones.prefill_worker_id, now, delay_ms)
        milestones.transfer_started_ms = start_ms
        self._transfers += 1
        self._transfer_count += 1
        order = (now, self._instant.round, RoundStep.ACTIONS, float(self._transfer_count))
        TransferProcess(self.clock, handoff, start_ms + delay_ms, order, self)

    def _transferred(self, handoff: Handoff) -> None:
        handoff.milestones.transfer_done_ms = self.clock.now
        self._note(handoff, Fact.TRANSFERRED)

    def _activate_destination(self, handoff: Handoff) -> None:
        side, milestones = self.decode, handoff.milestones
        worker_id = milestones.decode_worker_id
        if worker_id not in side.pool.processes or handoff.failure is not None:
            return
        if not side.defers(worker_id, (Action.ACTIVATE_DESTINATION, handoff)):
            side.commands.activate_destination(worker_id, handoff.request)
            milestones.destination_activated_ms = self.clock.now
            self._note(handoff, Fact.ACTIVATED)
            self._note_reserved(side.commands.attempt(worker_id))

    def _release_source(self, handoff: Handoff) -> None:
        side, milestones = self.prefill, handoff.milestones
        worker_id = milestones.prefill_worker_id
        if worker_id in side.pool.processes:
            if side.defers(worker_id, (Action.RELEASE_SOURCE, handoff)):
                return
            side.commands.release_source(worker_id, handoff.request)
            milestones.source_released_ms = self.clock.now
        self._note(handoff, Fact.RELEASED)

    def _cancel_source(self, handoff: Handoff) -> None:
        worker_id = handoff.milestones.prefill_worker_id
        if worker_id in self.prefill.pool.processes:
            if self.prefill.defers(worker_id, (Action.CANCEL_SOURCE, handoff)):
                return
            self.prefill.commands.cancel_source(worker_id, handoff.request)
        self._note(handoff, Fact.SOURCE_CANCELLED)

    def _cancel_destination(self, handoff: Handoff) -> None:
        worker_id = handoff.milestones.decode_worker_id
        if worker_id in self.decode.pool.processes:
            if self.decode.defers(worker_id, (Action.CANCEL_DESTINATION, handoff)):
                return
            self.decode.commands.cancel_destination(worker_id, handoff.request)
        self._note(handoff, Fact.DESTINATION_CANCELLED)

    def _complete_handoff(self, handoff: Handoff) -> None:
        request = handoff.request
        del self._handoffs[request]
        request.block_names = None
        side = self.prefill
        if side.router.hears_signals:
            self._dispatch(side, side.router.freed(request, side.pool, self.clock.now))

    def _fail(self, handoff: Handoff) -> None:
        request, now = handoff.request, self.clock.now
        self._complete_handoff(handoff)
        released: Iterable[Dispatch] = ()
        if self.decode.router.hears_signals:
            released = self.decode.router.freed(request, self.decode.pool, now)
        self._leave(request, rejected=True)
        self._dispatch(self.decode, released)

    # ------------------------------------------------------------ kills

    def _requests_lost(self, side: FleetSide, requests: list[Request]) -> None:
        """Requests of a killed worker have failed, unless what they need next is elsewhere by now."""
        fact = Fact.SOURCE_LOST if side is self.prefill else Fact.DESTINATION_LOST
        for worker_id in [i for i in side.deferred if i not in side.pool.processes]:
            self._actions += side.deferred.pop(worker_id)  # they find that it is gone
        for request in requests:
            handoff = self._handoffs.get(request)
            if handoff is not None:
                failed_before = handoff.failure is not None
                self._note(handoff, fact)
                self.killed_requests += handoff.failure is not None and not failed_before
            elif side is self.decode:
                self._decoded(request, rejected=True)
                self.killed_requests += 1
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
            self._actions += side.next_tasks()
            self._dispatch(side, side.router.release(side.pool, now))
        if next_ms is not None and is_due_later(next_ms, now):
            if self._nothing_to_come() and not any(side.waiting_count for side in self._sides):
                self._refuse_dead_end()
            self._check_idle_ticks()
            self._ticks.set_by(next_ms)
        else:
            self._end_ticks()

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
            self._actions += side.next_tasks()

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
        return None if self._in_system or self._handoffs else self.source.next_ms()

    # ------------------------------------------------------------ the end

    def _is_over(self) -> bool:
        """Whether nothing is in progress, in flight or to come (`spec 07, 14`)."""
        return (
            not self._in_system
            and not self._handoffs
            and not self._transfers
            and not any(side.pool.is_working for side in self._sides)
            and self.source.exhausted()
            and all(side.pool.fleet.is_drained for side in self._sides)
        )

    def _nothing_to_come(self) -> bool:
        """Whether requests are left but nothing can set anything going again."""
        return (
            not self._is_over()
            and not self._transfers
            and not self._actions
            and not self._instant
            and not any(side.pool.fleet.busy_count or side.pool.startups for side in self._sides)
            and self._polls.deadline_ms == math.inf
            and self.source.next_ms() is None
        )

    def _check_idle_ticks(self) -> None:
        """Fail after `MAX_IDLE_TICKS` ticks with requests that wait for a worker, and none that becomes ready."""
        waits = any(side.waiting_count for side in self._sides)
        works = self._transfers or any(side.pool.fleet.busy_count for side in self._sides)
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
