"""A worker and its startup as SimPy processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Protocol

import simpy
from simpy.events import Event

from dynamo_sim.clock import Clock
from dynamo_sim.engine.step import Step
from dynamo_sim.fleet.worker import Worker
from dynamo_sim.workload.request import Request

EventOrder = tuple[float, int, int, float]
"""Place of an event among all events of its time (`spec 01, 5`): the instant it was queued, the round of that instant,
the step of that round (`RoundStep`), and the place in that step."""


class Coordinator(Protocol):
    """Where processes report that their time has come."""

    def pass_due(self, process: WorkerProcess) -> None:
        """The step of a worker has ended, or a request of its inbox arrives."""

    def startup_due(self, process: StartupProcess) -> None:
        """The startup time of a worker is over (also of one that was cancelled meanwhile)."""


class WorkerProcess:
    """The process of one worker: waits for the end of its step, reports it, and waits again.

    The timeout of a step is armed when the step starts, so an idle worker costs nothing, and moved to an earlier pass
    boundary when something happens to the worker in the middle of a stretch.

    Attributes:
        worker: the worker, with the step it is busy with.
        coordinator: where it reports.
        inbox: requests that will arrive here, by time, where they are known before they do.
    """

    __slots__ = ("_clock", "_timer", "coordinator", "inbox", "worker")

    def __init__(self, clock: Clock, worker: Worker, coordinator: Coordinator) -> None:
        self.worker = worker
        self.inbox: deque[Request] = deque()
        self._clock = clock
        self.coordinator = coordinator
        self._timer = clock.timer()
        clock.start(self._run())

    def _run(self) -> Generator[Event, None, None]:
        pass_due = self.coordinator.pass_due
        while True:
            yield self._timer
            self._timer.again()
            pass_due(self)

    def wake_at(self, at_ms: float) -> None:
        """Report at ``at_ms``: the step of the worker ends, or a request of its inbox arrives."""
        self._timer.arm(at_ms)

    def stop(self) -> None:
        """Never report again."""
        self._timer.callbacks = []

    def cut(self, now_ms: float) -> None:
        """End a stretch at its first pass boundary at or after ``now_ms``."""
        step = self.worker.step
        if step is not None and len(step.ends_ms) > 1 and step.cut(now_ms):
            self._timer = self._timer.moved_to(step.ends_ms[-1])

    def end_at(self, now_ms: float) -> Step | None:
        """Where a pass inside a stretch ends at ``now_ms``: the stretch, cut there and no longer waited for.

        None where no pass ends then. The end of the whole stretch does not count, it is reported as usual.
        """
        step = self.worker.step
        if step is None or not step.has_boundary_at(now_ms):
            return None
        step.cut(now_ms)
        self._timer = self._timer.disarmed()
        return step


class StartupProcess:
    """The startup of an added worker: ends at a time set from the start, unless a cancellation interrupts it.

    The fleet handles the instant a cancelled worker would have been ready all the same (`spec 01, 5`).

    Attributes:
        worker_id: the worker that starts.
        ready_ms: when the startup is over.
        order: its place among the events of that time.
        is_reported: whether the coordinator knows already that it is over.
        coordinator: where it reports.
    """

    def __init__(
        self, clock: Clock, worker_id: int, ready_ms: float, order: EventOrder, coordinator: Coordinator
    ) -> None:
        self.worker_id = worker_id
        self.ready_ms = ready_ms
        self.order = order
        self.is_reported = False
        self._clock = clock
        self.coordinator = coordinator
        self._process = clock.start(self._run())

    def _run(self) -> Generator[Event, None, None]:
        ready = self._clock.until(self.ready_ms)
        try:
            yield ready
        except simpy.Interrupt:
            if not ready.processed:
                yield ready
        self.coordinator.startup_due(self)

    def cancel(self) -> None:
        """Cancel the startup."""
        self._process.interrupt("cancelled")
