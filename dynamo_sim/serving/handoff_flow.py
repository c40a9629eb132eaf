"""The handoffs of a disaggregated run: what each of them needs next, carried out (`spec 07, 6`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from dynamo_sim.clock import Clock
from dynamo_sim.engine.handoff import Reserved
from dynamo_sim.engine.step import FIRST_TOKEN, REJECTED, Step
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.routing.router import Dispatch
from dynamo_sim.serving.handoff import DESTINATION_FIRST, SOURCE_FIRST, Action, Fact, Handoff
from dynamo_sim.serving.instant import Instant, RoundStep
from dynamo_sim.serving.side import FleetSide, Task
from dynamo_sim.serving.transfer import Links, TransferProcess, TransferTiming
from dynamo_sim.workload.request import Request


class HandoffFlow:
    """Takes note of what happens to handoffs, and carries out the actions that follow, in one queue.

    An action for a worker with a pass in progress waits for its end. Those that need a worker to be chosen wait until
    one is active, unless the routers have queues for that.

    Args:
        clock, instant: the virtual clock, and the order of its present instant.
        prefill, decode: the two fleets.
        interner: names the blocks of prompts; both fleets use the same one.
        timing: how long transfers take.
        source_first: whether prompts are computed before a decode worker is chosen (vLLM), or after (SGLang).
        links: transfers of one prefill worker at the same time; None for any number.
        routers_queue: whether requests wait in the routers where no worker is active.
        request_waits: called when a request waits in a router.
        before_event: called before the end of a transfer is put in its place in the instant.
        failed: called with a request that has failed, once both sides are clean.

    Attributes:
        live: handoffs that are not complete, by request.
        actions: what is to be done now.
        transfers: in progress.
    """

    def __init__(
        self,
        clock: Clock,
        instant: Instant,
        prefill: FleetSide,
        decode: FleetSide,
        *,
        interner: PrefixInterner,
        timing: TransferTiming,
        source_first: bool,
        links: int | None,
        routers_queue: bool,
        request_waits: Callable[[], None],
        before_event: Callable[[], None],
        failed: Callable[[Request], None],
    ) -> None:
        self.live: dict[Request, Handoff] = {}
        self.actions: deque[Task] = deque()
        self.transfers = 0
        self._transfer_count = 0  # of all that took time
        self._clock = clock
        self._instant = instant
        self._prefill = prefill
        self._decode = decode
        self._interner = interner
        self._timing = timing
        self._links = Links(links)
        self._order = SOURCE_FIRST if source_first else DESTINATION_FIRST
        self._routers_queue = routers_queue
        self._request_waits = request_waits
        self._before_event = before_event
        self._failed = failed
        self._execute = {
            Action.SUBMIT_PREFILL: self._submit_prefill,
            Action.RESERVE_DESTINATION: self._reserve_destination,
            Action.START_TRANSFER: self._start_transfer,
            Action.ACTIVATE_DESTINATION: self._activate_destination,
            Action.RELEASE_SOURCE: self._release_source,
            Action.COMPLETE: self._complete,
            Action.CANCEL_SOURCE: self._cancel_source,
            Action.CANCEL_DESTINATION: self._cancel_destination,
            Action.FAIL: self._fail,
        }

    # ------------------------------------------------------------ what happens

    def arrived(self, request: Request) -> None:
        """A request has come: its handoff begins."""
        if request.content is not None:
            request.block_names = self._interner.names_of(request)  # both fleets ask for them
        handoff = self.live[request] = Handoff(request, self._order)
        request.handoff = handoff.milestones
        self.actions.append((handoff.start(), handoff))

    def prefilled(self, step: Step) -> None:
        """Prompts are computed, or refused."""
        side, now = self._prefill, self._clock.now
        held = []
        for request, kind in step.signals:
            handoff = self.live[request]
            if kind is REJECTED:
                self._note(handoff, Fact.REJECTED)
            elif kind is not FIRST_TOKEN:
                handoff.milestones.source_held_ms = now
                if side.router.hears_signals:
                    self.dispatch(side, side.router.prefill_completed(request, side.pool, now))
                held.append(handoff)
        for handoff in held:
            self._timing.delay_ms(handoff.request.input_tokens)  # refuses what would never arrive
            self._note(handoff, Fact.HELD)

    def decoded(self, request: Request) -> Iterable[Dispatch]:
        """A request has left the decode fleet: what the router of that fleet releases."""
        router, pool = self._decode.router, self._decode.pool
        return router.freed(request, pool, self._clock.now) if router.hears_signals else ()

    def worker_lost(self, side: FleetSide, request: Request) -> bool | None:
        """A worker was killed that had a request: whether it fails for that; None if its handoff was complete."""
        handoff = self.live.get(request)
        if handoff is None:
            return None
        failed_before = handoff.failure is not None
        self._note(handoff, Fact.SOURCE_LOST if side is self._prefill else Fact.DESTINATION_LOST)
        return handoff.failure is not None and not failed_before

    def transfer_due(self, process: TransferProcess) -> None:
        """A transfer is done."""
        self._before_event()
        self._instant.report(process.order, process)

    def take_transfers(self) -> bool:
        """The transfers at the head of what is due."""
        changed = False
        while (transfer := self._instant.take(TransferProcess)) is not None:
            self.transfers -= 1
            self._transferred(transfer.handoff)
            changed = True
        return changed

    # ------------------------------------------------------------ actions

    def carry_out(self) -> None:
        """Carry out all actions, and those that follow from them."""
        actions, execute = self.actions, self._execute
        while actions:
            action, handoff = actions.popleft()
            execute[action](handoff)

    def _note(self, handoff: Handoff, fact: Fact) -> None:
        """Tell a handoff what has happened to it, and queue what it asks for."""
        failed_before = handoff.failure
        for action in handoff.note(fact):
            self.actions.append((action, handoff))
        request = handoff.request
        if handoff.failure is not failed_before and request.outcome is None:
            request.outcome = handoff.failure
            request.ended_ms = self._clock.now

    def _submit_prefill(self, handoff: Handoff) -> None:
        self._ask_router(self._prefill, (Action.SUBMIT_PREFILL, handoff))

    def _reserve_destination(self, handoff: Handoff) -> None:
        self._ask_router(self._decode, (Action.RESERVE_DESTINATION, handoff))

    def _ask_router(self, side: FleetSide, task: Task) -> None:
        """Have a worker chosen, or wait until one is active."""
        if not side.pool.active_worker_ids() and not self._routers_queue:
            side.waiting.append(task)
            return
        dispatches = side.router.submit(task[1].request, side.pool, self._clock.now)
        if self._routers_queue and not dispatches:
            self._request_waits()
        self.dispatch(side, dispatches)

    def dispatch(self, side: FleetSide, dispatches: Iterable[Dispatch]) -> None:
        """Requests have a worker."""
        for dispatch in dispatches:
            handoff = self.live.get(dispatch.request)
            if handoff is None or handoff.failure is not None:
                # It has waited in the router for longer than its other side was there.
                self.dispatch(side, side.router.freed(dispatch.request, side.pool, self._clock.now))
                continue
            if side is self._prefill:
                self._submit_to(handoff, dispatch)
            else:
                self._reserve_at(handoff, dispatch.worker_id)

    def _submit_to(self, handoff: Handoff, dispatch: Dispatch) -> None:
        side, request, milestones = self._prefill, handoff.request, handoff.milestones
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
        side, request, milestones = self._decode, handoff.request, handoff.milestones
        milestones.decode_overlap_tokens = 0
        worker = side.pool.interrupted(worker_id).worker
        if not side.commands.reserve_destination(worker_id, request):
            self._note(handoff, Fact.REFUSED)
            return
        side.pool.note_dispatch(Dispatch(request, worker_id))
        milestones.decode_worker_id = request.worker_id = worker_id
        if not worker.busy:
            self.note_reserved(side.attempt(worker_id))

    def note_reserved(self, reserved: Reserved | None) -> None:
        """An attempt has found room for a destination, or for none."""
        if reserved is not None:
            handoff = self.live[reserved.request]
            handoff.missing_tokens = reserved.missing_tokens
            handoff.milestones.destination_reserved_ms = self._clock.now
            self._note(handoff, Fact.RESERVED)

    def _start_transfer(self, handoff: Handoff) -> None:
        now, timing, milestones = self._clock.now, self._timing, handoff.milestones
        milestones.transfer_started_ms = now
        milestones.transfer_tokens = timing.tokens(handoff)
        delay_ms = timing.delay_ms(milestones.transfer_tokens)
        if delay_ms <= 0:
            self._transferred(handoff)
            return
        assert milestones.prefill_worker_id is not None
        start_ms = self._links.start_ms(milestones.prefill_worker_id, now, delay_ms)
        milestones.transfer_started_ms = start_ms
        self.transfers += 1
        self._transfer_count += 1
        order = (now, self._instant.round, RoundStep.ACTIONS, float(self._transfer_count))
        TransferProcess(self._clock, handoff, start_ms + delay_ms, order, self)

    def _transferred(self, handoff: Handoff) -> None:
        handoff.milestones.transfer_done_ms = self._clock.now
        self._note(handoff, Fact.TRANSFERRED)

    def _activate_destination(self, handoff: Handoff) -> None:
        side, milestones = self._decode, handoff.milestones
        worker_id = milestones.decode_worker_id
        if worker_id not in side.pool.processes or handoff.failure is not None:
            return
        if not side.defers(worker_id, (Action.ACTIVATE_DESTINATION, handoff)):
            side.commands.activate_destination(worker_id, handoff.request)
            milestones.destination_activated_ms = self._clock.now
            self._note(handoff, Fact.ACTIVATED)
            self.note_reserved(side.attempt(worker_id))

    def _release_source(self, handoff: Handoff) -> None:
        side, milestones = self._prefill, handoff.milestones
        worker_id = milestones.prefill_worker_id
        if worker_id in side.pool.processes:
            if side.defers(worker_id, (Action.RELEASE_SOURCE, handoff)):
                return
            side.commands.release_source(worker_id, handoff.request)
            milestones.source_released_ms = self._clock.now
        self._note(handoff, Fact.RELEASED)

    def _cancel_source(self, handoff: Handoff) -> None:
        worker_id = handoff.milestones.prefill_worker_id
        if worker_id in self._prefill.pool.processes:
            if self._prefill.defers(worker_id, (Action.CANCEL_SOURCE, handoff)):
                return
            self._prefill.commands.cancel_source(worker_id, handoff.request)
        self._note(handoff, Fact.SOURCE_CANCELLED)

    def _cancel_destination(self, handoff: Handoff) -> None:
        worker_id = handoff.milestones.decode_worker_id
        if worker_id in self._decode.pool.processes:
            if self._decode.defers(worker_id, (Action.CANCEL_DESTINATION, handoff)):
                return
            self._decode.commands.cancel_destination(worker_id, handoff.request)
        self._note(handoff, Fact.DESTINATION_CANCELLED)

    def _complete(self, handoff: Handoff) -> None:
        request = handoff.request
        del self.live[request]
        request.block_names = None
        side = self._prefill
        if side.router.hears_signals:
            self.dispatch(side, side.router.freed(request, side.pool, self._clock.now))

    def _fail(self, handoff: Handoff) -> None:
        self._complete(handoff)
        released = self.decoded(handoff.request)
        self._failed(handoff.request)
        self.dispatch(self._decode, released)
