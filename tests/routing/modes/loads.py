"""Small random loads with every routing mode."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from dynamo_sim.errors import SimulationError
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.simulation import run
from tests.parity.cases import to_scenario
from tests.parity.random_cases import build

MODES: tuple[dict[str, Any], ...] = (
    {"mode": "least_loaded"},
    {"mode": "least_loaded", "by": "waiting"},
    {"mode": "least_loaded", "by": "waiting_tokens"},
    {"mode": "least_loaded", "by": "kv_usage"},
    {"mode": "least_loaded", "by": "kv_usage", "metrics": {"interval_ms": 5}},
    {"mode": "least_loaded", "by": "waiting_tokens", "metrics": {"interval_ms": 20}},
    {"mode": "power_of_two_choices"},
    {"mode": "power_of_two_choices", "by": "kv_usage"},
    {"mode": "power_of_two_choices", "by": "waiting", "metrics": {"interval_ms": 10}},
    {"mode": "random"},
    {"mode": "prefix_hash", "prefix_blocks": 2},
    {"mode": "session_affinity"},
    {"mode": "session_affinity", "by": "first_turn"},
    {"mode": "endpoint_picker", "lru_capacity_blocks": 20},
    {"mode": "endpoint_picker", "prefix_index": "kv_events"},
    {"mode": "endpoint_picker", "metrics": {"interval_ms": 5}},
)
"""One of each kind; intervals that meet the ends of passes where times coincide."""


def random_scenario(seed: int, index: int, routing: dict[str, Any]) -> Scenario:
    """Several workers, more of them later and fewer after that, some of which are killed."""
    draw = random.Random(f"{seed}/{index}/routing")
    case = build(seed, index)
    for key in ("scaling", "poll_ms", "max_sim_time_ms"):
        case.pop(key, None)
    scenario = to_scenario(case | {"workers": draw.randint(2, 4)})
    changes: dict[str, Any] = {"routing": routing, "seed": seed}
    if draw.random() < 0.6:
        changes |= {
            "fleet.engine.startup_time": draw.choice([None, 0.01, 0.02]),
            "fleet.drain_grace_s": draw.choice([None, 0.0, 0.01]),
            "scaling": [
                {"at_ms": 5.0 * step, "workers": draw.randint(1, 6)}
                for step in sorted(draw.sample(range(1, 60), draw.randint(1, 5)))
            ],
        }
    return scenario.with_(**changes)


def answer(scenario: Scenario, router: Any = None) -> Any:
    """All that is to be the same, however the run is computed."""
    try:
        result = run(scenario, router=router)
    except SimulationError as error:
        return str(error)
    records = result.records
    return (
        [
            (r.index, r.worker_id, r.first_admit_ms, r.first_token_ms, r.last_token_ms, r.ended_ms, r.outcome)
            for r in sorted(records.requests, key=lambda request: request.index)
        ],
        [(change.at_ms, change.cause, change.worker_ids) for change in records.fleets[0].changes],
        records.end_ms,
    )


def without_lockstep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have vLLM advance every sequence by itself."""
    in_groups = VllmScheduler.__init__

    def one_by_one(self: VllmScheduler, *args: Any, **more: Any) -> None:
        in_groups(self, *args, **more, lockstep=False)

    monkeypatch.setattr(VllmScheduler, "__init__", one_by_one)
