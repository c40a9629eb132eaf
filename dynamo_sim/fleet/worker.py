"""A worker and its startup as SimPy processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Protocol

import simpy
from simpy.events import Event

from dynamo_sim.clock import Clock
from dynamo_sim.engine.step import Step
from dynamo_sim.workload.request import Request


class Coordinator(Protocol):
    """Where processes report that their time has come."""

    def pass_due(self, process: WorkerProcess) -> None:
        """The step of a worker has ended."""

    def startup_due(self, process: StartupProcess) -> None:
        """The startup time of a worker is over (also of one that was cancelled meanwhile)."""


class WorkerProcess:
    """One worker: waits for the end of its step, reports it, and waits again.

    The timeout of a step is armed when the coordinator starts the step, so an idle worker costs nothing, and moved to
    an earlier pass boundary when something happens to the worker in the middle of a stretch.

    Attributes:
        step: what it is busy with, or None.
        inbox: requests that will arrive here, by time, where they are known before they do.
    """

    def __init__(self, clock: Clock, worker_id: int, coordinator: Coordinator) -> None:
        self.worker_id = worker_id
        self.step: Step | None = None
        self.inbox: deque[Request] = deque()
        self._clock = clock
        self._coordinator = coordinator
        self._timer = clock.timer()
        clock.start(self._run())

    def _run(self) -> Generator[Event, None, None]:
        while True:
            yield self._timer
            self._timer = self._clock.timer()
            self._coordinator.pass_due(self)

    def begin(self, step: Step) -> None:
        """Be busy with ``step`` until its end."""
        self.step = step
        self._timer.arm(step.ends_ms[-1])

    def wake_at(self, at_ms: float) -> None:
        """Report at ``at_ms`` although idle: a request of the inbox arrives."""
        self._timer.arm(at_ms)

    def stop(self) -> None:
        """Never report again."""
        self.step = None
        self._timer.callbacks = []

    def cut(self, now_ms: float) -> None:
        """End a stretch at its first pass boundary at or after ``now_ms``."""
        step = self.step
        if step is not None and len(step.ends_ms) > 1 and step.cut(now_ms):
            self._timer = self._timer.moved_to(step.ends_ms[-1])

    def end_at(self, now_ms: float) -> Step | None:
        """Be idle where a pass of a stretch ends at ``now_ms``: the stretch up to it; None where none does.

        The end of the whole stretch does not count, it is reported as usual.
        """
        step = self.step
        if step is None or not step.has_boundary_at(now_ms):
            return None
        step.cut(now_ms)
        self.step = None
        self._timer = self._timer.disarmed()
        return step


class StartupProcess:
    """The startup of an added worker: ends at a time set from the start, unless a cancellation interrupts it.

    The fleet looks up at the instant a cancelled worker would have been ready all the same (`spec 01, 5`).
    """

    def __init__(
        self,
        clock: Clock,
        worker_id: int,
        ready_ms: float,
        order: tuple[float, int, float],
        coordinator: Coordinator,
    ) -> None:
        self.worker_id = worker_id
        self.ready_ms = ready_ms
        self.order = order
        self.cancelled = False
        self.is_reported = False
        self._clock = clock
        self._coordinator = coordinator
        self._process = clock.start(self._run())

    def _run(self) -> Generator[Event, None, None]:
        ready = self._clock.until(self.ready_ms)
        try:
            yield ready
        except simpy.Interrupt:
            self.cancelled = True
            if not ready.processed:
                yield ready
        self._coordinator.startup_due(self)

    def cancel(self) -> None:
        """Call the startup off."""
        self._process.interrupt("cancelled")
