"""What a serving asks of whatever decides which worker a request goes to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from dynamo_sim.kv.kv_events import KvEvent
from dynamo_sim.routing.worker_view import WorkerView
from dynamo_sim.workload.request import Request


class Dispatch(NamedTuple):
    """A request and the worker that it goes to now.

    Attributes:
        hit_rate: share of the prompt's blocks that the router takes to be cached there; None where it does not know.
        terms: what was weighed, for whoever records decisions (`dynamo_sim.records.routing.RoutingDecision`).
    """

    request: Request
    worker_id: int
    hit_rate: float | None = None
    terms: Mapping[str, Sequence[float]] | None = None


class RoutedPool(Protocol):
    """What a router may ask of the pool of workers that it routes to, at the time of a decision."""

    def active_worker_ids(self) -> tuple[int, ...]:
        """Ids of the workers that are neither starting nor draining, ascending."""

    def worker(self, worker_id: int) -> WorkerView:
        """The state of a worker that exists."""

    def take_changed(self) -> Iterable[int]:
        """Ids of the workers that may have changed since the last call in another way than by growing.

        Within the step of a worker only the KV tokens that it holds change: they grow. Only for a router that
        `reads_changes`.
        """

    def take_kv_events(self) -> Iterable[tuple[int, Iterable[KvEvent]]]:
        """KV events that have become visible since the last call, by worker (`spec 06, 3.1`).

        Of one worker they are in order. Only for a router that `reads_kv_events`.
        """


class Router(Protocol):
    """Decides which worker a request goes to, and owns the queue in front of the workers.

    Every method that can send requests answers with the dispatches of this moment, in their order; whoever asks hands
    them over at once. Times are the virtual time in ms.

    Attributes:
        is_oblivious: whether the choice depends on nothing but the order of the requests and who is active: then the
            worker of a request is known before anything runs (`spec 01, 15`), and `pick` tells it.
        hears_signals: whether `prefill_completed` and `freed` have to be called at all.
        reads_kv_events: whether the workers have to publish KV events.
        reads_changes: whether the pool has to keep which workers have changed.
        scrape_interval_ms: time between two calls of `scrape`; None for a router that scrapes nothing.
        on_hold: set while every request has to wait in the queue, whatever workers there are.
        queued_count: requests that wait in the queue.
    """

    is_oblivious: bool
    hears_signals: bool
    reads_kv_events: bool
    reads_changes: bool
    scrape_interval_ms: float | None
    on_hold: bool

    @property
    def queued_count(self) -> int: ...

    def queued_ms(self, now_ms: float) -> float:
        """Time spent in the queue so far, in ms, summed over all requests that waited in it."""

    def pick(self, active_ids: Sequence[int]) -> int:
        """The worker of the next request, of an oblivious router."""

    def submit(self, request: Request, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        """A request has arrived: its dispatch, or nothing when it waits in the queue.

        Raises:
            SimulationError: no worker is active, and the router does not queue.
        """

    def prefill_completed(self, request: Request, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        """The first output token of a request has come, and more will follow (`spec 06, 3.2`)."""

    def freed(self, request: Request, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        """A request has left its worker: completed, rejected or failed."""

    def release(self, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        """Look at the queue again: a worker has become ready, a target was applied, or `on_hold` has changed."""

    def scrape(self, pool: RoutedPool) -> None:
        """Read what is to be known of the workers until the next call."""

    def worker_joined(self, worker_id: int) -> None:
        """A worker is active from now on."""

    def worker_draining(self, worker_id: int) -> None:
        """A worker gets nothing new from now on."""

    def worker_removed(self, worker_id: int) -> None:
        """A worker is gone; its id is never used again."""


class FrontendQueue:
    """Requests that wait in front of the workers, first come, first served."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Request, float]] = deque()
        self._waited_ms = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def push(self, request: Request, now_ms: float) -> None:
        """Let a request wait from ``now_ms`` on."""
        self._waiting.append((request, now_ms))

    def pop(self, now_ms: float) -> Request:
        """Take the request that has waited longest."""
        request, since_ms = self._waiting.popleft()
        self._waited_ms += now_ms - since_ms
        return request

    def waited_ms(self, now_ms: float) -> float:
        """Time in the queue so far, in ms, summed over all requests that waited in it."""
        return self._waited_ms + sum(now_ms - since_ms for _, since_ms in self._waiting)
