"""Two fleets and what happens between them, as stories."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.errors import SimulationError
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.serving.controller import ScriptedTargets
from dynamo_sim.serving.disaggregated import DisaggregatedServing
from dynamo_sim.simulation import run as simulate
from dynamo_sim.workload.milestones import HandoffMilestones
from dynamo_sim.workload.request import Outcome, Request
from tests.parity.cases import to_scenario
from tests.serving.two_fleets import build


def serving(
    prompts: list[tuple[float, int, int]],
    decode_blocks: int = 32,
    targets: ScriptedTargets | None = None,
    grace_ms: float | None = None,
    **more: Any,
) -> DisaggregatedServing:
    """Requests (arrival in ms, prompt, output) on fleets of vLLM workers with blocks of 4 tokens; 1 ms a token sent."""
    records = [
        {"timestamp": at_ms, "input_length": prompt, "output_length": output, "hash_ids": [100 * i + 1]}
        for i, (at_ms, prompt, output) in enumerate(prompts)
    ]
    engine = {"engine_type": "vllm", "block_size": 4}
    case = {
        "workload": {"kind": "trace", "format": "mooncake", "block_size": 128, "records": records},
        "prefill": engine
        | {
            "worker_type": "prefill",
            "num_gpu_blocks": 64,
            "kv_bytes_per_token": 1_000_000,
            "kv_transfer_bandwidth": 1.0,
        },
        "decode": engine | {"worker_type": "decode", "num_gpu_blocks": decode_blocks},
        **more,
    }
    return build(to_scenario(case), targets, grace_ms)


def requests_of(run: DisaggregatedServing) -> list[Request]:
    run.run()
    return run.decode.collector.records.requests


def milestones(request: Request) -> HandoffMilestones:
    assert request.handoff is not None
    return request.handoff


def test_a_prompt_goes_from_one_fleet_to_the_other() -> None:
    (request,) = requests_of(serving([(0.0, 8, 3)]))
    way = milestones(request)
    times = [
        request.first_admit_ms,
        way.source_held_ms,
        way.destination_reserved_ms,
        way.destination_activated_ms,
        request.first_token_ms,
        request.last_token_ms,
    ]
    assert None not in times and times == sorted(times, key=lambda t: t or 0.0)
    assert way.transfer_tokens == 8
    assert way.transfer_done_ms == (way.transfer_started_ms or 0.0) + 8.0
    assert request.outcome is Outcome.COMPLETED


def test_a_decode_worker_scaled_down_with_a_pending_destination_serves_it_and_leaves() -> None:
    # The second prompt finds no room beside the first one, on the only worker that was there when it came.
    run = serving(
        [(0.0, 80, 20), (1.0, 60, 2)],
        targets=ScriptedTargets([(100.0, 2), (101.0, 0), (150.0, 1)]),
    )
    first, second = requests_of(run)
    assert milestones(second).decode_worker_id == milestones(first).decode_worker_id == 0
    reserved_ms = milestones(second).destination_reserved_ms
    assert reserved_ms is not None and reserved_ms == first.last_token_ms
    assert second.outcome is Outcome.COMPLETED
    assert 0 not in run.decode.pool.fleet.workers


def test_a_prefill_worker_marked_for_removal_stays_while_it_keeps_a_prompt() -> None:
    run = serving(
        [(0.0, 80, 20), (1.0, 60, 2)],
        targets=ScriptedTargets([], [(60.0, 0), (400.0, 1)]),
    )
    gone_ms = {}
    run.prefill.pool.listen(lambda cause, ids, now_ms: gone_ms.update({cause.value: now_ms}))
    _, second = requests_of(run)
    assert second.outcome is Outcome.COMPLETED
    assert gone_ms["removed"] == milestones(second).source_released_ms


def test_a_killed_decode_worker_frees_the_prompts_that_were_kept_for_it() -> None:
    run = serving([(0.0, 80, 20), (1.0, 60, 2)], targets=ScriptedTargets([(100.0, 0)]), grace_ms=10.0)
    first, second = requests_of(run)
    assert first.outcome is Outcome.FAILED and second.outcome is Outcome.FAILED
    assert run.killed_requests == 2
    (worker,) = run.prefill.pool.fleet.workers.values()
    assert worker.is_drained


def test_a_prefill_worker_killed_during_a_transfer_fails_the_request() -> None:
    run = serving([(0.0, 80, 2)], targets=ScriptedTargets([], [(40.0, 0)]), grace_ms=10.0)
    (request,) = requests_of(run)
    assert request.outcome is Outcome.FAILED and request.first_token_ms is None
    (worker,) = run.decode.pool.fleet.workers.values()
    assert worker.is_drained


def test_a_dead_end_names_both_fleets_and_a_remedy() -> None:
    run = serving([(0.0, 11, 4), (1.0, 4, 2), (2.0, 7, 2)], decode_blocks=4)
    with pytest.raises(SimulationError, match=r"prefill: .*; decode: worker 0: .*; raise num_gpu_blocks"):
        run.run()


def test_a_fleet_without_workers_is_named_when_nothing_will_bring_one() -> None:
    run = serving([(50.0, 8, 2)], targets=ScriptedTargets([(5.0, 0)]))
    with pytest.raises(SimulationError, match="decode: 1 requests wait, and no worker is active"):
        run.run()


def test_a_fleet_that_its_autoscaler_leaves_without_workers_is_named_with_that_remedy() -> None:
    scenario = Scenario.from_dict(
        {
            "name": "x",
            "workload": {"kind": "synthetic", "input_tokens": 64, "output_tokens": 4, "request_count": 3},
            "prefill": {},
            "decode": {},
            "autoscaler": {"prefill": {"policy": {"kind": "fixed", "count": 0}}},
        }
    )
    said = "requests wait in the router, and no worker is active; .*; keep at least one prefill worker"
    with pytest.raises(SimulationError, match=said):
        simulate(scenario)
