"""A pool of workers: ids, targets, startup, removal, passes and completions (`spec 01, 3`)."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass

from dynamo_sim.engine.roles import Stage
from dynamo_sim.engine.scheduler import Scheduler
from dynamo_sim.engine.step import Step
from dynamo_sim.errors import SimulationError
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.worker import Worker
from dynamo_sim.limits import MAX_WORKERS
from dynamo_sim.workload.request import Outcome, Request

MAX_REASONS = 2
"""Stuck workers that are reported one by one; the others are often stuck in the same way."""


@dataclass(frozen=True, slots=True)
class TargetEffect:
    """What a target did to a fleet.

    Attributes:
        added: ids of new workers, ascending.
        marked: ids of active workers that were marked for removal, in that order (highest first).
        removed: ids of marked workers that had nothing left to do and are gone, ascending.
        cancelled: ids of starting workers whose startup was cancelled, ascending.
    """

    added: tuple[int, ...] = ()
    marked: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    cancelled: tuple[int, ...] = ()


@dataclass(slots=True)
class Completion:
    """The end of a pass (or stretch), due at the end of its step: in the same instant when it takes no time."""

    stage: Stage
    worker_id: int
    step: Step

    @property
    def immediate(self) -> bool:
        """Whether it has to be handled at once."""
        return self.step.ends_ms[-1] == self.step.start_ms


@dataclass(slots=True)
class WorkerState:
    """The state of one worker, for tests and observers."""

    worker_id: int
    busy: bool
    in_flight: int
    ready: bool
    drained: bool


class Fleet:
    """Workers of one stage, in ascending id order. It knows no clock; times come in as arguments.

    Workers get ids 0, 1, 2, ... that are never used again. Three sets of ids: all, starting (ready later) and draining
    (marked for removal); *active* is all others. The first workers are active at once, whatever the startup time.

    Args:
        stage: what the workers do.
        make_scheduler: builds the scheduler of the worker with that id.
        workers: how many to begin with.
        startup_time_s: seconds a later worker needs before it is active; None or 0 for none.
        visible: whether passes are reported to a collector.

    Attributes:
        idle_with_work: ids of workers that have requests and no pass in progress, ascending.
    """

    def __init__(
        self,
        stage: Stage,
        make_scheduler: Callable[[int], Scheduler],
        workers: int,
        startup_time_s: float | None = None,
        visible: bool = True,
    ) -> None:
        self.stage = stage
        self.visible = visible
        self.startup_time_s = startup_time_s
        self.workers: dict[int, Worker] = {}
        self.starting: set[int] = set()
        self.draining: set[int] = set()
        self.in_flight = 0
        self.busy_count = 0
        self._make_scheduler = make_scheduler
        self._next_id = 0
        self.idle_with_work: list[int] = []
        self._active: tuple[int, ...] | None = None
        for _ in range(workers):
            self.add_worker()

    # ------------------------------------------------------------ who is there

    def add_worker(self) -> int:
        """Add a worker and return its id."""
        worker_id = self._next_id
        self._next_id += 1
        hands_over = self.stage is Stage.PREFILL
        self.workers[worker_id] = Worker(worker_id, self._make_scheduler(worker_id), hands_over)
        self._active = None
        return worker_id

    def mark_for_removal(self, worker_id: int) -> None:
        """Let a worker finish what it has and leave; it gets nothing new."""
        self.draining.add(worker_id)
        self._active = None

    def try_remove_drained(self) -> list[int]:
        """Remove the draining workers that have nothing left to do; their ids, ascending."""
        removed = []
        for worker_id in sorted(self.draining):
            worker = self.workers.get(worker_id)
            if worker is None:
                self.draining.discard(worker_id)
            elif worker.is_drained:
                self._drop(worker_id)
                removed.append(worker_id)
        return removed

    def kill(self, worker_id: int, now_ms: float) -> list[Request]:
        """Take a worker away at once; the requests it had, which have failed (`spec 10, 10`: drain deadline).

        Those of a prefill worker need not have failed, since their prompts may be elsewhere: the caller has to say.
        Tokens of a pass that has not ended by now never came out.
        """
        worker = self._worker(worker_id)
        step = worker.step
        if step is not None:
            self.busy_count -= 1
        worker.scheduler.close()
        if worker.scheduler.lower_tiers is not None:
            worker.scheduler.lower_tiers.abandon()
        lost = [*worker.scheduler.live_requests(), *(request for request, _ in (step.finals if step else ()))]
        lost += worker.scheduler.handoffs.requests()
        for request in () if worker.hands_over else lost:
            request.outcome = Outcome.FAILED
            request.ended_ms = now_ms
            request.forget_tokens_after(now_ms, step.start_ms if step is not None else now_ms)
        self.in_flight -= worker.in_flight
        worker.in_flight = 0
        if worker_id in self.idle_with_work:
            self.idle_with_work.remove(worker_id)
        self._drop(worker_id)
        return lost

    def active_worker_ids(self) -> tuple[int, ...]:
        """Ids that are neither starting nor draining, ascending."""
        if self._active is None:
            self._active = tuple(i for i in self.workers if i not in self.starting and i not in self.draining)
        return self._active

    @property
    def has_active_workers(self) -> bool:
        """Whether any worker takes requests."""
        return bool(self.active_worker_ids())

    @property
    def worker_count(self) -> int:
        """All workers, starting and draining ones included."""
        return len(self.workers)

    @property
    def startup_time_ms(self) -> float | None:
        """Delay before an added worker is active, or None for none."""
        if self.startup_time_s is None or self.startup_time_s <= 0:
            return None
        return self.startup_time_s * 1000.0

    def mark_worker_ready(self, worker_id: int) -> bool:
        """A worker's startup is over: True if it is active now, False for a cancelled, unknown or ready id."""
        if worker_id not in self.starting:
            return False
        self.starting.discard(worker_id)
        self._active = None
        return worker_id in self.workers

    def apply_target_count(self, target: int) -> TargetEffect:
        """Scale to ``target`` workers.

        Draining workers do not count and are not taken back. When there are too many, starting workers are cancelled
        first, newest first, then active ones are marked for removal, highest id first.

        Raises:
            SimulationError: more workers than any fleet has.
        """
        if target > MAX_WORKERS:
            raise SimulationError(
                f"a target of {target:,} workers is beyond the {MAX_WORKERS:,} a fleet may have"
            )
        active = self.active_worker_ids()
        effective = len(active) + len(self.starting)
        added: list[int] = []
        cancelled: list[int] = []
        marked: list[int] = []
        if target > effective:
            added = [self.add_worker() for _ in range(target - effective)]
            if self.startup_time_ms is not None:
                self.starting.update(added)
        else:
            excess = effective - target
            cancelled = sorted(self.starting, reverse=True)[:excess]
            for worker_id in cancelled:
                self._drop(worker_id)
            marked = list(reversed(active))[: excess - len(cancelled)]
            for worker_id in marked:
                self.mark_for_removal(worker_id)
        removed = self.try_remove_drained()
        return TargetEffect(tuple(added), tuple(marked), tuple(removed), tuple(sorted(cancelled)))

    # ------------------------------------------------------------ work

    def dispatch(self, worker_id: int, request: Request) -> None:
        """Hand a request to any worker that exists.

        Raises:
            SimulationError: unknown id.
        """
        worker = self._worker(worker_id)
        worker.receive(request)
        self.in_flight += 1
        if worker.step is None and worker_id not in self.idle_with_work:
            insort(self.idle_with_work, worker_id)

    def is_busy(self, worker_id: int) -> bool:
        """Whether a pass of that worker is in progress.

        Raises:
            SimulationError: unknown id.
        """
        return self._worker(worker_id).busy

    @property
    def is_drained(self) -> bool:
        """Whether every worker has nothing left to do."""
        return all(worker.is_drained for worker in self.workers.values())

    def states(self) -> list[WorkerState]:
        """The state of every worker, in id order."""
        return [
            WorkerState(w.id, w.busy, w.in_flight, w.id not in self.starting, w.is_drained)
            for w in self.workers.values()
        ]

    def drive_ready(
        self, now_ms: float, max_passes: int, collector: Collector | None = None
    ) -> Completion | None:
        """Start at most one productive pass, on the idle worker with the lowest id that has one.

        A pass that takes no time and does nothing is dropped, and the next worker is tried; one that takes no time but
        does something completes at once. None when no worker can start anything.

        Raises:
            SimulationError: the fleet is visible and there is no collector.
        """
        for worker_id in self.idle_with_work:
            if collector is None and self.visible:
                raise SimulationError("offline replay visible engine pass requires a collector")
            step = self.start(self.workers[worker_id], now_ms, max_passes)
            if step is not None:
                return Completion(self.stage, worker_id, step)
        return None

    def start(self, worker: Worker, now_ms: float, max_passes: int) -> Step | None:
        """Start a pass of an idle worker that has requests; None when it takes no time and does nothing."""
        step = worker.scheduler.start(now_ms, max_passes)
        if step.ends_ms[-1] > now_ms:
            worker.step = step
            self.busy_count += 1
            self.idle_with_work.remove(worker.id)
        elif not step.progress:
            return None
        return step

    def on_completion(self, completion: Completion, now_ms: float) -> list[tuple[Request, bool]]:
        """A pass is over: the requests that ended in it, with "was rejected", in the engine's order.

        Raises:
            SimulationError: the completion is of another stage, or of an unknown worker.
        """
        if completion.stage is not self.stage:
            raise SimulationError(
                f"offline replay completion stage mismatch: expected {self.stage.value}, got {completion.stage.value}"
            )
        worker = self.workers.get(completion.worker_id)
        if worker is None:
            raise SimulationError(f"offline replay completion for unknown worker {completion.worker_id}")
        return self.complete(worker, completion.step, now_ms)

    def complete(self, worker: Worker, step: Step, now_ms: float) -> list[tuple[Request, bool]]:
        """`on_completion` for a step that is known to be of this worker."""
        idle = self.idle_with_work
        if worker.step is not None:
            self.busy_count -= 1
        finals = worker.finish(step, now_ms)
        self.in_flight -= len(finals)
        if worker.scheduler.request_count:
            if not idle:
                idle.append(worker.id)
            elif worker.id not in idle:
                insort(idle, worker.id)
        elif worker.id in idle:
            idle.remove(worker.id)
        return finals

    def dead_end(self, queued: int = 0) -> str:
        """What is stuck, and why, for a person; ``queued`` requests wait in front of the fleet."""
        left = sum(worker.in_flight for worker in self.workers.values()) + queued
        what = f"the run reached a dead end with {left} in-flight requests remaining"
        whys = ((worker.id, worker.scheduler.stuck_reason()) for worker in self.workers.values())
        reasons = [f"worker {worker_id}: {why}" for worker_id, why in whys if why]
        more = len(reasons) - MAX_REASONS
        if more > 0:
            reasons[MAX_REASONS:] = [f"{more} more workers are stuck"]
        return "; ".join([what, *reasons])

    # ------------------------------------------------------------ inside

    def _worker(self, worker_id: int) -> Worker:
        worker = self.workers.get(worker_id)
        if worker is None:
            raise SimulationError(f"offline replay selected unknown worker {worker_id}")
        return worker

    def _drop(self, worker_id: int) -> None:
        del self.workers[worker_id]
        self.starting.discard(worker_id)
        self.draining.discard(worker_id)
        self._active = None
