"""Workers and pools that are made up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dynamo_sim.kv.kv_events import KvEvent
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.routing.build import build_router
from dynamo_sim.routing.context import RouterContext
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.workload.request import Request

BLOCK_TOKENS = 4


@dataclass
class FakeWorker:
    """What a router reads of a worker."""

    id: int
    in_flight: int = 0
    waiting: int = 0
    waiting_tokens: int = 0
    kv_usage: float = 0.0


@dataclass
class FakePool:
    """Workers that change when a test says so, and count how often they are looked at."""

    workers: dict[int, FakeWorker]
    changed: set[int] = field(default_factory=set)
    looks: int = 0

    @classmethod
    def of(cls, count: int) -> FakePool:
        return cls({worker_id: FakeWorker(worker_id) for worker_id in range(count)})

    def active_worker_ids(self) -> tuple[int, ...]:
        return tuple(self.workers)

    def worker(self, worker_id: int) -> Any:
        self.looks += 1
        return self.workers[worker_id]

    def take_changed(self) -> set[int]:
        taken, self.changed = self.changed, set()
        return taken

    def take_kv_events(self) -> Iterable[tuple[int, Iterable[KvEvent]]]:
        return ()

    def set(self, worker_id: int, **values: Any) -> None:
        for name, value in values.items():
            setattr(self.workers[worker_id], name, value)
        self.changed.add(worker_id)


def router(routing: dict[str, Any], workers: int = 0, seed: int = 0) -> Any:
    """The router of a section, with workers that have joined."""
    workload = {"kind": "synthetic", "input_tokens": 1, "output_tokens": 1, "request_count": 1}
    scenario = Scenario.from_dict({"name": "fake", "workload": workload, "routing": routing})
    context = RouterContext(EngineArgs(block_size=BLOCK_TOKENS), PrefixInterner(BLOCK_TOKENS), seed)
    made = build_router(scenario.routing, context)
    for worker_id in range(workers):
        made.worker_joined(worker_id)
    return made


def send(made: Any, pool: FakePool, request: Request, now_ms: float = 0.0) -> int:
    """The worker of a request, which it has in flight from now on."""
    (dispatch,) = made.submit(request, pool, now_ms)
    worker_id: int = dispatch.worker_id
    pool.set(worker_id, in_flight=pool.workers[worker_id].in_flight + 1)
    return worker_id


def prompt(*values: int, index: int = 0, session: str | None = None) -> Request:
    """A request with one block for each value."""
    content = tuple((value, BLOCK_TOKENS) for value in values)
    return Request(
        index, 0.0, BLOCK_TOKENS * max(1, len(values)), 5, content or None, session_id=session, turn_index=0
    )
