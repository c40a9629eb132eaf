"""What holds in every run with a prefill and a decode fleet, whoever is scaled down or killed.

``DYNAMO_SIM_PROPERTY_RUNS`` says how many runs (default 60).
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from dynamo_sim.errors import DynamoSimError
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.serving.controller import ScriptedTargets
from dynamo_sim.serving.disaggregated import DisaggregatedServing
from dynamo_sim.workload.request import Outcome
from tests.parity.cases import to_scenario
from tests.parity.random_disaggregated import build as random_case
from tests.serving.two_fleets import build

RUNS = int(os.environ.get("DYNAMO_SIM_PROPERTY_RUNS", "60"))


def serving_with_kills(seed: int) -> DisaggregatedServing:
    """A random case whose fleets shrink and grow, and whose draining workers are killed after a while."""
    draw = random.Random(f"kills/{seed}")
    case: dict[str, Any] = random_case(7, seed)
    for key in ("scaling", "poll_ms", "max_sim_time_ms", "router_mode"):
        case.pop(key, None)
    times = sorted(round(draw.uniform(1.0, 600.0), 1) for _ in range(draw.randint(1, 5)))
    plans = [[(at_ms, draw.choice([None, 1, 1, 2, 3])) for at_ms in times] for _ in range(2)]
    grace = draw.choice([None, 0.0, 5.0, 60.0])
    return build(to_scenario(case), ScriptedTargets(*plans), grace)


def check_books(fleet: Fleet) -> None:
    """Requests in flight add up, and so do the blocks of every worker without a pass in progress."""
    workers = list(fleet.workers.values())
    assert fleet.in_flight == sum(worker.in_flight for worker in workers) >= 0
    assert fleet.busy_count == sum(worker.busy for worker in workers)
    idle = [w.id for w in workers if not w.busy and w.scheduler.request_count]
    assert fleet.idle_with_work == idle
    for worker in workers:
        if not worker.busy:
            worker.scheduler.check()  # type: ignore[attr-defined]


def holds_everything_again(scheduler: Any) -> bool:
    """Whether all room of a worker can be had. SGLang loses slots when it retracts a request (`spec 05, 12`)."""
    if hasattr(scheduler, "pool"):
        return bool(scheduler.pool.active == 0)
    return bool(scheduler.preemptions or scheduler.cache.available == scheduler.cache.total_tokens)


@pytest.mark.parametrize("seed", range(RUNS))
def test_nothing_is_lost_and_every_handoff_ends(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = serving_with_kills(seed)
    settle = serving._settle

    def settle_and_check() -> None:
        settle()
        if not serving.done:
            for side in (serving.prefill, serving.decode):
                check_books(side.pool.fleet)

    serving._instant._settle = settle_and_check
    try:
        serving.run()
    except DynamoSimError:
        return  # a dead end, which says so
    requests = serving.decode.collector.records.requests
    assert all(request.outcome is not None for request in requests)
    assert not serving._flow.live and not serving._in_system
    for side in (serving.prefill, serving.decode):
        assert not side.waiting and not any(side.deferred.values())
        for worker in side.pool.fleet.workers.values():
            assert worker.is_drained and worker.scheduler.handoffs.is_empty
            assert holds_everything_again(worker.scheduler)
    for request in requests:
        if request.outcome is Outcome.COMPLETED:
            assert request.handoff is not None and request.handoff.decode_admit_ms is not None
            assert request.emitted_tokens > 0
