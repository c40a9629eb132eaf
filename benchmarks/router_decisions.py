#!/usr/bin/env python3
"""CPU time of one decision of the cache-aware router, by the number of workers and the length of the prompt.

    python benchmarks/router_decisions.py

A decision is all that the router does for a request: naming its blocks, taking in what the last dispatch has cached,
looking up the overlap, costs, the choice, the booking, and later giving the booking back. The first half of each prompt
is shared in 20 groups, four requests a worker are in flight.
"""

from __future__ import annotations

import random
import sys
import time
from collections import deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dynamo_sim.kv.kv_events import KvEvent
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.routing.build import RouterContext, build_router
from dynamo_sim.routing.worker_view import WorkerView
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.scenario.routing import KvRouting
from dynamo_sim.workload.request import Request, Runs

BLOCK_TOKENS = 64
GROUPS = 20


class Pool:
    """Workers that cache each prompt that they are given."""

    def __init__(self) -> None:
        self.events: list[tuple[int, list[KvEvent]]] = []

    def active_worker_ids(self) -> tuple[int, ...]:
        raise NotImplementedError

    def worker(self, worker_id: int) -> WorkerView:
        raise NotImplementedError

    def take_kv_events(self) -> list[tuple[int, list[KvEvent]]]:
        events, self.events = self.events, []
        return events


def prompt(draw: random.Random, index: int, blocks: int) -> Runs:
    """A prompt that shares its first half with its group."""
    half, group = blocks // 2, draw.randrange(GROUPS)
    shared = ((group * blocks + place, BLOCK_TOKENS) for place in range(half))
    own = (((GROUPS + index) * blocks + place, BLOCK_TOKENS) for place in range(half))
    return (*shared, *own)


def decision_us(workers: int, blocks: int) -> float:
    """Microseconds a decision, over as many as it takes to fill and to measure."""
    draw, pool, interner = random.Random(1), Pool(), PrefixInterner(BLOCK_TOKENS)
    router = build_router(
        KvRouting(mode="kv_router"), RouterContext(EngineArgs(block_size=BLOCK_TOKENS), interner)
    )
    for worker in range(workers):
        router.worker_joined(worker)
    count = 8 * workers + 4000
    requests = [
        Request(index, float(index), blocks * BLOCK_TOKENS, 8, content=prompt(draw, index, blocks))
        for index in range(count)
    ]
    in_flight: deque[Request] = deque()
    begin = 0.0
    for index, request in enumerate(requests):
        if index == count - 4000:
            begin = time.process_time()
        dispatch = router.submit(request, pool, float(index))[0]
        found = round((dispatch.hit_rate or 0.0) * blocks)
        new_names = tuple(request.block_names or ())[found:]
        pool.events = [(dispatch.worker_id, [KvEvent("stored", None, new_names)])]
        in_flight.append(request)
        if len(in_flight) > 4 * workers:
            oldest = in_flight.popleft()
            router.prefill_completed(oldest, pool, float(index))
            router.freed(oldest, pool, float(index))
    return (time.process_time() - begin) / 4000 * 1e6


def main() -> None:
    print(f"{'workers':>8} {'64 blocks':>12} {'256 blocks':>12}")
    for workers in (16, 256, 1000):
        print(
            f"{workers:8} {decision_us(workers, 64):9.0f} us {decision_us(workers, 256):9.0f} us", flush=True
        )


if __name__ == "__main__":
    main()
