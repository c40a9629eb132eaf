"""The table of keys without effect, proved by pairs of runs: one key changed, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from dynamo_sim.errors import ScenarioError, SimulationError
from dynamo_sim.scenario import Scenario
from dynamo_sim.scenario.effects import effective, notes, without_effect
from dynamo_sim.simulation import run

WORKLOAD = {
    "kind": "synthetic",
    "input_tokens": 40,
    "output_tokens": 12,
    "request_count": 16,
    "arrival_interval_ms": 6.0,
    "shared_prefix_ratio": 0.5,
    "num_prefix_groups": 2,
}
ROWS = [
    {
        "timestamp": 7 * number,
        "session_id": f"s{number % 4}",
        "input_length": 30 + 4 * number,
        "output_length": 8,
        "hash_ids": list(range(number % 4 * 100, number % 4 * 100 + 30)),
    }
    for number in range(4)
] + [
    {
        "session_id": f"s{number % 4}",
        "delay": 20,
        "input_length": 60,
        "output_length": 9,
        "hash_ids": list(range(number % 4 * 100, number % 4 * 100 + 30)),
    }
    for number in range(4)
]
ENGINE = {"num_gpu_blocks": 48, "block_size": 4, "max_num_seqs": 6, "max_num_batched_tokens": 64}
SGLANG = {
    "engine_type": "sglang",
    "num_gpu_blocks": 60,
    "block_size": 4,
    "max_num_seqs": 6,
    "sglang": {"chunked_prefill_size": 24, "schedule_policy": "lpm"},
}


def scenario(workload: Any = WORKLOAD, engine: Any = ENGINE, workers: int = 2, **sections: Any) -> Scenario:
    fleet = {"workers": workers, "engine": engine, **sections.pop("fleet", {})}
    return Scenario.from_dict({"name": "s", "workload": workload, "fleet": fleet, **sections})


SCENARIOS = {
    "open": scenario(),
    "one worker": scenario(workers=1),
    "closed": scenario(limits={"concurrency": 5}),
    "turns": scenario({**WORKLOAD, "turns_per_session": 3, "inter_turn_delay_ms": 15.0}),
    "closed turns": scenario(
        {**WORKLOAD, "turns_per_session": 3, "inter_turn_delay_ms": 15.0}, limits={"concurrency": 5}
    ),
    "sglang": scenario(engine=SGLANG),
    "trtllm": scenario(engine={**ENGINE, "engine_type": "trtllm"}),
    "drafts": scenario(engine={**ENGINE, "aic_nextn": 2}),
    "trace": scenario({"kind": "trace", "records": ROWS, "trace_block_size": 4}),
    "closed trace": scenario(
        {"kind": "trace", "records": ROWS, "trace_block_size": 4}, limits={"concurrency": 2}
    ),
    "scripted": scenario(scaling=[{"at_ms": 30, "workers": 4}, {"at_ms": 70, "workers": 1}]),
    "autoscaler": scenario(
        autoscaler={
            "period_s": 0.02,
            "max_workers": 4,
            "policy": {"kind": "queue_proportional", "per_worker": 2},
        },
    ),
    "generated": scenario(
        {
            "kind": "generated",
            "duration_s": 0.1,
            "arrivals": {"shape": "poisson", "rate_rps": 150},
            "input_tokens": 40,
            "output_tokens": 12,
        }
    ),
}

OTHER: dict[str, list[Any]] = {
    "seed": [7],
    "workload.input_tokens": [56],
    "workload.output_tokens": [9],
    "workload.request_count": [13],
    "workload.arrival_interval_ms": [2.5],
    "workload.turns_per_session": [2],
    "workload.arrival_speedup_ratio": [3.0],
    "workload.arrivals": [{"shape": "poisson", "rate_rps": 300}],
    "workload.duration_s": [0.05],
    "limits.max_sim_time_ms": [40.0],
    "workload.shared_prefix_ratio": [0.9],
    "workload.num_prefix_groups": [1, 5],
    "workload.inter_turn_delay_ms": [33.0],
    "workload.trace_block_size": [5],
    "fleet.workers": [3],
    "fleet.engine.engine_type": ["trtllm", "vllm"],
    "fleet.engine.num_gpu_blocks": [30, 24],
    "fleet.engine.block_size": [8],
    "fleet.engine.max_num_seqs": [2],
    "fleet.engine.max_num_batched_tokens": [32],
    "fleet.engine.enable_prefix_caching": [False],
    "fleet.engine.enable_chunked_prefill": [False],
    "fleet.engine.preemption_mode": ["fifo"],
    "fleet.engine.speedup_ratio": [2.0],
    "fleet.engine.decode_speedup_ratio": [2.0],
    "fleet.engine.aic_tp_size": [2],
    "fleet.engine.aic_attention_dp_size": [2],
    "fleet.engine.aic_nextn": [1],
    "fleet.engine.aic_nextn_accept_rates": ["0.1,0.1"],
    "fleet.engine.aic_mtp_seed": [5],
    "fleet.engine.startup_time": [0.015],
    "fleet.startup": [{"kind": "fixed", "seconds": 0.015}],
    "fleet.drain_grace_s": [0.001],
    "fleet.engine.sglang.schedule_policy": ["fifo", "lpm"],
    "fleet.engine.sglang.page_size": [2, 8],
    "fleet.engine.sglang.max_prefill_tokens": [20],
    "fleet.engine.sglang.chunked_prefill_size": [8],
    "fleet.engine.sglang.clip_max_new_tokens": [2],
    "fleet.engine.sglang.schedule_conservativeness": [0.3],
    "fleet.engine.trtllm.capacity_scheduler_policy": ["max_utilization"],
    "limits.concurrency": [3],
    "fleet.engine.aic_system": ["h200"],
    "fleet.engine.aic_backend_version": ["1"],
    "fleet.engine.aic_model_path": ["m"],
    "fleet.engine.aic_moe_tp_size": [2],
    "fleet.engine.gpu_memory_utilization": [0.5],
    "fleet.engine.kv_bytes_per_token": [1000],
    "fleet.engine.kv_transfer_bandwidth": [10.0],
    "fleet.engine.num_g2_blocks": [10],
    "fleet.engine.enable_local_indexer": [True],
    "fleet.engine.zmq_kv_events_port": [5555],
    "fleet.engine.router_queue_policy": ["lcfs"],
}


UNSEEN_HERE = {
    "fleet.engine.sglang.schedule_policy": "all prompts share one prefix, so lpm takes them as fifo does",
    "workload.num_prefix_groups": "only whether it is above 0 matters, and these scenarios have it",
    "workload.trace_block_size": "the rows here have more ids than they need",
    "fleet.engine.sglang.max_prefill_tokens": "the run reaches a dead end with less than a prompt",
}
"""Keys that may change figures, and change none in these scenarios."""


@cache
def figures(name: str, key: str = "", at: int = 0) -> str | None:
    """All that a scenario's run answers, with one key changed; None where the change is refused."""
    scenario = SCENARIOS[name]
    try:
        result = run(scenario.with_(**{key: OTHER[key][at]}) if key else scenario)
    except (ScenarioError, SimulationError):
        return None
    tables = (result.requests, result.passes, result.fleet, result.decisions)
    return "\n".join([repr(result.summary.without_wall_time()), *(table.to_csv() for table in tables)])


def said(name: str, key: str, at: int) -> bool:
    """Whether the changed key is said to be without effect."""
    return key in dict(without_effect(SCENARIOS[name].with_(**{key: OTHER[key][at]})))


def pairs(key: str) -> Iterator[tuple[str, int]]:
    """The scenarios, and values of the key, that can be run."""
    for name in SCENARIOS:
        for at in range(len(OTHER[key])):
            if figures(name, key, at) is not None:
                yield name, at


@pytest.mark.parametrize("key", OTHER)
def test_a_key_that_is_said_to_be_without_effect_changes_no_figure(key: str) -> None:
    for name, at in pairs(key):
        if said(name, key, at):
            assert figures(name, key, at) == figures(name), f"{key} in {name!r}"


@pytest.mark.parametrize("key", [key for key in OTHER if key not in UNSEEN_HERE])
def test_a_key_that_is_not_said_to_be_without_effect_changes_some_figure(key: str) -> None:
    open_pairs = [(name, at) for name, at in pairs(key) if not said(name, key, at)]
    assert not open_pairs or any(figures(name, key, at) != figures(name) for name, at in open_pairs)


def test_only_whether_there_are_prefix_groups_matters() -> None:
    few, many = (SCENARIOS["open"].with_(**{"workload.num_prefix_groups": groups}) for groups in (1, 5))
    assert run(few).requests.equals(run(many).requests)
    assert effective(few) == effective(many) != effective(few.with_(**{"workload.num_prefix_groups": 0}))
    assert "workload.num_prefix_groups: only whether it is above 0 matters" in "\n".join(notes(many))
