"""The cache-aware router of the reference (`spec 06`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.errors import SimulationError
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.routing.kv.active_load import ActiveLoad
from dynamo_sim.routing.kv.cost import choose, costs
from dynamo_sim.routing.kv.overlap_index import Depths, OverlapIndex
from dynamo_sim.routing.kv.queue import Arrival, QueueClass, RouterQueue
from dynamo_sim.routing.router import Dispatch, RoutedPool
from dynamo_sim.workload.request import Request

if TYPE_CHECKING:
    from dynamo_sim.scenario.routing import KvRouting

NOTHING = Depths(())


class KvRouter:
    """Sends each request to the worker that costs least: little to prefill there, and little that is active.

    It knows what the workers' KV events say, and what it has booked itself; it never looks at a worker.

    Args:
        config: its configuration.
        queue: where requests wait while all workers are busy.
        interner: names the blocks of prompts.
        random: where ties and temperature are drawn from.
        never_queues: whether requests are dispatched however busy the workers are (a busy threshold of null).
        waits_for_workers: whether requests wait where no worker is active, even then.
        reads_kv_events: whether it looks at what is cached at all.

    Attributes:
        explains: whether its dispatches say what was weighed.
    """

    is_oblivious = False
    hears_signals = True
    reads_changes = False
    scrape_interval_ms: float | None = None

    def __init__(
        self,
        config: KvRouting,
        queue: RouterQueue,
        interner: PrefixInterner,
        random: np.random.Generator,
        never_queues: bool = False,
        waits_for_workers: bool = False,
        reads_kv_events: bool = True,
    ) -> None:
        self.on_hold = False
        self.explains = False
        self.reads_kv_events = reads_kv_events
        self._config = config
        self._queue = queue
        self._never_queues = never_queues
        self._waits_for_workers = waits_for_workers
        self._interner = interner
        self._block_tokens = interner.block_size
        self._random = random
        self._index = OverlapIndex()
        self._load = ActiveLoad()
        self._eligible: tuple[int, ...] = ()
        self._rows: slice | NDArray[np.int64] = slice(0, 0)  # the eligible workers in vectors by worker id

    def pick(self, active_ids: Sequence[int]) -> int:
        """Cannot tell without the request."""
        raise NotImplementedError

    def scrape(self, pool: RoutedPool) -> None:
        """Looks at no worker."""

    # ------------------------------------------------------------ the workers

    def worker_joined(self, worker_id: int) -> None:
        """A worker is eligible from now on, without cache and load (`spec 06, 7`)."""
        self._index.add_worker(worker_id)
        self._load.add_worker(worker_id)
        self._set_eligible((*self._eligible, worker_id))

    def worker_draining(self, worker_id: int) -> None:
        """A worker is not eligible any more: its cache and load stop mattering at once (`spec 06, 7`)."""
        if worker_id in self._eligible:
            self._index.forget_worker(worker_id)
            self._load.forget_worker(worker_id)
            self._set_eligible(tuple(i for i in self._eligible if i != worker_id))

    def worker_removed(self, worker_id: int) -> None:
        """It was draining before, or never joined."""

    def _set_eligible(self, worker_ids: tuple[int, ...]) -> None:
        self._eligible = ids = tuple(sorted(worker_ids))
        gapless = not ids or ids[-1] - ids[0] == len(ids) - 1
        self._rows = slice(ids[0], ids[-1] + 1) if ids and gapless else np.array(ids, dtype=np.int64)

    # ------------------------------------------------------------ the queue

    @property
    def queued_count(self) -> int:
        """Requests that wait in the queue."""
        return len(self._queue)

    def queued_ms(self, now_ms: float) -> float:
        """Time spent in the queue so far, in ms, summed over all requests that waited in it."""
        return self._queue.waited_ms(now_ms)

    def submit(self, request: Request, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        """The dispatch of a request that has arrived, or nothing when it has to wait (`spec 06, 4`).

        Raises:
            SimulationError: no worker is active and there is no queue, or a limit of the queue is reached.
        """
        arrival = self._look_up(request, pool, now_ms)
        queue_class = self._queue.class_of(arrival)
        if not self._has_to_wait(queue_class):
            return (self._dispatch(arrival),)
        self._queue.push(queue_class, arrival, len(self._eligible))
        return ()

    def prefill_completed(self, request: Request, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        """The booked tokens of a request are taken back; others may find a worker that is not busy any more."""
        self._load.prefill_completed(request)
        return self.release(pool, now_ms) if self._queue else ()

    def freed(self, request: Request, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        """All that is booked for a request is taken back."""
        self._load.freed(request)
        request.block_names = None
        return self.release(pool, now_ms) if self._queue else ()

    def release(self, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        """Dispatch what waits as long as there is a worker that is not busy (`spec 06, 6.2`)."""
        released: list[Dispatch] = []
        while self._queue and self._eligible and not self.on_hold:
            arrival = self._queue.pop(self._least_booked(), now_ms)
            if arrival is None:
                break
            released.append(self._dispatch(arrival))
        return released

    def _has_to_wait(self, queue_class: QueueClass) -> bool:
        """Whether a newcomer of a class waits: behind others of its class, or because all workers are busy."""
        if self.on_hold or queue_class:
            return True
        if not self._eligible:
            if self._never_queues and not self._waits_for_workers:
                raise SimulationError(
                    "routing.router_queue_threshold: found null, so that no request can wait, and a request arrived "
                    "while no worker was active; give a threshold (the default is 16.0), or keep at least one worker"
                )
            return True
        return not self._never_queues and queue_class.is_busy(self._least_booked())

    def _least_booked(self) -> int:
        """Booked tokens of the least booked eligible worker: all are busy where that one is."""
        return int(self._load.prefill_tokens[self._rows].min())

    # ------------------------------------------------------------ a decision

    def _look_up(self, request: Request, pool: RoutedPool, now_ms: float) -> Arrival:
        """What is cached where now; it is not looked up again when a request that waits is dispatched."""
        index = self._index
        index.follow(pool.take_kv_events())
        request.block_names = names = self._interner.names_of(request)
        blocks = names[: request.input_tokens // self._block_tokens]
        overlap = index.depths(blocks)
        cached_tokens = overlap.largest(index.known) * self._block_tokens
        return Arrival(request, blocks, overlap, cached_tokens, now_ms)

    def _dispatch(self, arrival: Arrival) -> Dispatch:
        """Choose a worker and book the request on it (`spec 06, 5`)."""
        config, load, rows = self._config, self._load, self._rows
        request, blocks, overlap = arrival.request, arrival.blocks, arrival.overlap
        reuses, workers = config.router_assume_kv_reuse, self._index.known
        shared = load.shared_depths(blocks) if reuses and config.router_track_active_blocks else NOTHING
        booked, active = load.prefill_tokens[rows], load.active_blocks[rows]
        cached, common = overlap.as_vector(workers)[rows], shared.as_vector(workers)[rows]
        weighed = costs(config, request.input_tokens, self._block_tokens, booked, cached, active, common)
        terms = None
        if self.explains:
            terms = {
                "worker_ids": self._eligible,
                "cost": tuple(weighed.tolist()),
                "booked_tokens": tuple(booked.tolist()),
                "cached_blocks": tuple(cached.tolist()),
                "active_blocks": tuple(active.tolist()),
                "shared_blocks": tuple(common.tolist()),
            }
        place = choose(weighed, config.router_temperature, self._random, config.tie_break)
        chosen = self._eligible[place]
        overlap_blocks = overlap.of(chosen)
        tracked = config.router_track_prefill_tokens
        full_blocks = request.input_tokens // self._block_tokens if config.router_track_active_blocks else 0
        load.book(
            request,
            chosen,
            request.input_tokens - overlap_blocks * self._block_tokens if tracked else 0,
            blocks if full_blocks and reuses else (),
            full_blocks if not (blocks and reuses) else 0,
        )
        hit_rate = overlap_blocks / -(-request.input_tokens // self._block_tokens)
        return Dispatch(request, chosen, hit_rate, terms)
