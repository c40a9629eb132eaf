"""The part that routers without a queue policy of their own share: requests wait only where no worker can take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dynamo_sim.errors import SimulationError
from dynamo_sim.routing.router import Dispatch, FrontendQueue, RoutedPool
from dynamo_sim.workload.request import Request


class QueueingRouter:
    """Sends a request to the worker that `choose` names, as long as there is an active one.

    Args:
        waits_for_workers: whether requests wait where no worker is active; otherwise they are an error, as in the
            reference (`spec 01, 8`).

    Attributes:
        explains: whether `choose` has to say what it weighed.
        terms, hit_rate: what it has to say of its last choice (`Dispatch`).
    """

    is_oblivious = False
    hears_signals = False
    reads_kv_events = False
    reads_changes = False
    scrape_interval_ms: float | None = None

    def __init__(self, waits_for_workers: bool = False) -> None:
        self.on_hold = False
        self.explains = False
        self.terms: Mapping[str, Sequence[float]] | None = None
        self.hit_rate: float | None = None
        self._waits_for_workers = waits_for_workers
        self._queue = FrontendQueue()

    def choose(self, request: Request, pool: RoutedPool, now_ms: float) -> int:
        """The worker for a request; at least one is active unless the router does not queue."""
        raise NotImplementedError

    def pick(self, active_ids: Sequence[int]) -> int:
        """Only oblivious routers can tell."""
        raise NotImplementedError

    @property
    def queued_count(self) -> int:
        """Requests that wait in the queue."""
        return len(self._queue)

    def queued_ms(self, now_ms: float) -> float:
        """Time spent in the queue so far, in ms, summed over all requests that waited in it."""
        return self._queue.waited_ms(now_ms)

    def submit(self, request: Request, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        """The dispatch of a request that has arrived, or nothing when it has to wait.

        Raises:
            SimulationError: no worker is active, and requests do not wait for one.
        """
        if self.on_hold or self._queue or (self._waits_for_workers and not pool.active_worker_ids()):
            self._queue.push(request, now_ms)
            return ()
        return (self._dispatch(request, pool, now_ms),)

    def release(self, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        """Dispatch all that waits, in its order, once there is an active worker."""
        if self.on_hold or not self._queue or not pool.active_worker_ids():
            return ()
        waiting = (self._queue.pop(now_ms) for _ in range(len(self._queue)))
        return [self._dispatch(request, pool, now_ms) for request in waiting]

    def _dispatch(self, request: Request, pool: RoutedPool, now_ms: float) -> Dispatch:
        worker_id = self.choose(request, pool, now_ms)
        return Dispatch(request, worker_id, self.hit_rate, self.terms)

    def prefill_completed(self, request: Request, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        """Changes nothing."""
        return ()

    def freed(self, request: Request, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        """Changes nothing."""
        return ()

    def scrape(self, pool: RoutedPool) -> None:
        """Looks at no worker."""

    def worker_joined(self, worker_id: int) -> None:
        """Workers are looked up in the pool."""

    def worker_draining(self, worker_id: int) -> None:
        """Workers are looked up in the pool."""

    def worker_removed(self, worker_id: int) -> None:
        """Workers are looked up in the pool."""


def refuse_without_workers(active_ids: Sequence[int], mode: str) -> None:
    """Refuse a request that no worker can take.

    Raises:
        SimulationError: no worker is active.
    """
    if not active_ids:
        raise SimulationError(
            f"a request arrived while no worker was active; {mode} has nowhere to send it "
            "(keep at least one worker, or scale up before the request arrives)"
        )
