"""One of the two fleets of a disaggregated run, with what waits for its workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from dynamo_sim.clock import Clock
from dynamo_sim.engine.handoff import Reserved
from dynamo_sim.engine.roles import Stage
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.commands import FleetCommands
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.fleet.processes import StartupProcess, WorkerProcess
from dynamo_sim.routing.router import Router
from dynamo_sim.serving.handoff import Action, Handoff
from dynamo_sim.serving.instant import Instant, RoundStep
from dynamo_sim.serving.pool import Pool, PoolOptions
from dynamo_sim.workload.request import Request

Task = tuple[Action, Handoff]


@dataclass(frozen=True, slots=True)
class SideParts:
    """What one of the two fleets is made of.

    Attributes:
        fleet: the workers.
        router: decides which of them a request goes to; requests never wait in it for a worker to be there.
        collector: takes the notes about these workers.
        options: how the fleet changes.
    """

    fleet: Fleet
    router: Router
    collector: Collector
    options: PoolOptions = field(default_factory=PoolOptions)


class FleetSide:
    """A pool, what waits for one of its workers to be active, and what waits for a pass to end.

    Args:
        parts: what it is made of.
        clock, instant: the virtual clock, and the order of its present instant.
        before_event: called before a startup that is over is put in its place in the instant.
        requests_lost: called with the requests of a worker that was killed.

    Attributes:
        pool: the fleet with its processes.
        commands: commands to its workers.
        waiting: tasks that wait for an active worker, in order.
        deferred: tasks that wait for the end of the pass of a worker, by its id.
        stuck: whether a worker has requests and cannot go on, and every further try changes something in it.
    """

    def __init__(
        self,
        parts: SideParts,
        clock: Clock,
        instant: Instant,
        *,
        before_event: Callable[[], None],
        requests_lost: Callable[[FleetSide, list[Request]], None],
    ) -> None:
        prefills = parts.fleet.stage is Stage.PREFILL
        self.collector = parts.collector
        self.router = parts.router
        self.pool = Pool(
            parts.fleet,
            parts.router,
            clock,
            instant,
            parts.collector,
            self,
            requests_lost=lambda requests: requests_lost(self, requests),
            options=parts.options,
            passes_step=RoundStep.PREFILL_PASSES if prefills else RoundStep.PASSES,
        )
        self.pool.index_boundaries()  # every transfer asks for them
        self.commands = FleetCommands(parts.fleet)
        self.waiting: deque[Task] = deque()
        self.deferred: dict[int, list[Task]] = {}
        self.stuck = False
        self._instant = instant
        self._before_event = before_event

    # ------------------------------------------------------------ processes report

    def pass_due(self, process: WorkerProcess) -> None:
        step = process.worker.step
        assert step is not None
        self._instant.report(self.pool.end_order(process.worker.id, step), process)

    def startup_due(self, process: StartupProcess) -> None:
        if not process.is_reported:
            self._before_event()
            self._instant.report(process.order, process)

    # ------------------------------------------------------------ destinations

    def attempt(self, worker_id: int) -> Reserved | None:
        """Look for room for the destination of an idle worker that has waited longest; what it evicts sets out now."""
        tiers = self.pool.fleet.workers[worker_id].scheduler.lower_tiers
        if tiers is not None:
            tiers.time_is(self.pool.clock.now)
        return self.commands.attempt(worker_id)

    # ------------------------------------------------------------ tasks

    @property
    def waiting_count(self) -> int:
        """Requests that wait for an active worker."""
        return len(self.waiting) + self.router.queued_count

    def defers(self, worker_id: int, task: Task) -> bool:
        """Whether a task has to wait for the end of a pass of its worker; it is noted then."""
        if not self.pool.interrupted(worker_id).worker.busy:
            return False
        self.deferred.setdefault(worker_id, []).append(task)
        return True

    def next_tasks(self) -> list[Task]:
        """What waited for a worker, once there is an active one."""
        if not self.waiting or not self.pool.active_worker_ids():
            return []
        tasks = list(self.waiting)
        self.waiting.clear()
        return tasks
