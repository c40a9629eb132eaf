"""One worker of a fleet: its scheduler and the step it is busy with (`spec 01, 4`)."""

from __future__ import annotations

import math

from dynamo_sim.engine.scheduler import Scheduler
from dynamo_sim.engine.step import Step
from dynamo_sim.workload.request import Outcome, Request


class Worker:
    """One worker: its scheduler and what it is busy with.

    Args:
        worker_id: its id.
        scheduler: its engine.
        hands_over: whether its requests go on elsewhere when they end here: it is a prefill worker.
    """

    __slots__ = ("hands_over", "id", "in_flight", "scheduler", "step")

    def __init__(self, worker_id: int, scheduler: Scheduler, hands_over: bool = False) -> None:
        self.id = worker_id
        self.scheduler = scheduler
        self.hands_over = hands_over
        self.step: Step | None = None
        self.in_flight = 0

    @property
    def busy(self) -> bool:
        """Whether a pass is in progress."""
        return self.step is not None

    @property
    def is_drained(self) -> bool:
        """Whether nothing is left to do here."""
        if self.step is not None or self.in_flight or self.scheduler.request_count:
            return False
        tiers = self.scheduler.lower_tiers
        return self.scheduler.handoffs.is_empty and (tiers is None or tiers.is_quiet)

    def receive(self, request: Request) -> None:
        """Take a request into the queue."""
        request.worker_id = self.id
        self.scheduler.receive(request)
        self.in_flight += 1

    def start(self, now_ms: float, max_passes: int, until_ms: float = math.inf) -> Step:
        """Be busy with the next pass or stretch; something happens to the worker at ``until_ms``."""
        self.step = step = self.scheduler.start(now_ms, max_passes, until_ms)
        return step

    def finish(self, step: Step, now_ms: float) -> list[tuple[Request, bool]]:
        """Be idle again: the requests that ended with the step, with "was rejected", in the engine's order."""
        self.step = None
        self.scheduler.finish(step)
        if not step.signals:
            return []
        finals = step.finals
        self.in_flight -= len(finals)
        if self.hands_over:
            return finals
        for request, rejected in finals:
            request.outcome = Outcome.REJECTED if rejected else Outcome.COMPLETED
            # The step may have gone on after it ended.
            request.ended_ms = now_ms if rejected else request.last_token_ms
        return finals
