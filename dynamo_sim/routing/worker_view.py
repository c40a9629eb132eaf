"""What a router can see of one worker."""

from __future__ import annotations

from collections.abc import Callable

from dynamo_sim.fleet.worker import Worker


class WorkerView:
    """The state of a worker at the moment at which it is read.

    Nothing is copied and nobody is interrupted: each value is worked out when it is asked for, also in the middle of a
    stretch. A view stays good as long as its worker is there.

    Args:
        worker: the worker.
        now_ms: tells the present virtual time.
    """

    __slots__ = ("_now_ms", "_worker")

    def __init__(self, worker: Worker, now_ms: Callable[[], float]) -> None:
        self._worker = worker
        self._now_ms = now_ms

    def __repr__(self) -> str:
        return (
            f"<worker {self.id}: {self.running} running, {self.waiting} waiting, "
            f"{self.kv_usage:.0%} of the KV cache in use>"
        )

    @property
    def id(self) -> int:
        """Its id."""
        return self._worker.id

    @property
    def in_flight(self) -> int:
        """Requests dispatched to it and not ended."""
        return self._worker.in_flight

    @property
    def waiting(self) -> int:
        """Requests that its engine has not admitted, or has preempted."""
        return self._worker.scheduler.waiting_count

    @property
    def running(self) -> int:
        """Requests in its batch."""
        return self.in_flight - self.waiting

    @property
    def waiting_tokens(self) -> int:
        """Tokens of the waiting requests: of their prompts, and what preempted ones have generated."""
        return self._worker.scheduler.waiting_tokens

    @property
    def kv_tokens(self) -> int:
        """Tokens of its KV cache that requests hold."""
        worker = self._worker
        return worker.scheduler.kv_tokens_at(worker.step, self._now_ms())

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens that its KV cache can hold."""
        return self._worker.scheduler.total_kv_tokens

    @property
    def kv_usage(self) -> float:
        """Share of its KV cache that requests hold, from 0 to 1."""
        return self.kv_tokens / self.kv_capacity_tokens
