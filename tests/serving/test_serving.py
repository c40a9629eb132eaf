"""Three ways to serve, one answer: independent workers against the coordinator; and what stops a run.

Rules: `spec 01, 6, 7 and 15`.
"""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim import simulation
from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from dynamo_sim.errors import DynamoSimError, SimulationError
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.fleet.worker import Worker
from dynamo_sim.routing.round_robin import RoundRobin
from tests.parity.answer import answer
from tests.parity.cases import to_scenario
from tests.parity.random_cases import build


def uncoupled_cases() -> list[dict[str, Any]]:
    """Random cases of several workers in which no arrival depends on a request."""
    cases = [build(77, index) for index in range(160)]
    for case in cases:
        for key in ("scaling", "poll_ms", "concurrency"):
            case.pop(key, None)
        case["workers"] = max(2, case["workers"])
    return [case for case in cases if case["engine"]["engine_type"] != "sglang"]


def test_workers_that_look_ahead_give_the_answers_of_rounds_at_every_instant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = uncoupled_cases()
    alone = [answer(case) for case in cases]
    assert sum("error" not in result for result in alone) > 50
    monkeypatch.setattr(RoundRobin, "is_oblivious", False)
    together = [answer(case) for case in cases]
    for case, left, right in zip(cases, alone, together, strict=True):
        if "error" in left:
            assert "error" in right, case["name"]
            continue
        for key in ("decode_worker_seconds", "gpu_hours"):  # sums in another order
            assert left["report"].pop(key) == pytest.approx(right["report"].pop(key), rel=1e-12)
        assert left == right, case["name"]


def test_steps_that_go_on_when_requests_end_record_what_steps_that_end_with_them_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def runs() -> list[Any]:
        found: list[Any] = []
        for case in uncoupled_cases():
            try:
                found.append(simulation.run(to_scenario(case).with_(**{"report.passes": True})))
            except DynamoSimError:
                found.append(None)
        return found

    across, start = runs(), VllmScheduler.start
    monkeypatch.setattr(VllmScheduler, "start", lambda *args: start(*args[:4]))  # without "undisturbed"
    ending = runs()
    assert sum(run is not None for run in across) > 50
    for left, right in zip(across, ending, strict=True):
        assert (left is None) == (right is None)
        if left is not None:
            assert left.passes.equals(right.passes) and left.requests.equals(right.requests)


def case(workers: int, records: list[dict[str, Any]], **engine: Any) -> dict[str, Any]:
    for index, record in enumerate(records):
        record.setdefault("hash_ids", list(range(100 * index, 100 * index + 50)))
        record.setdefault("timestamp", index)
    return {
        "workload": {"kind": "trace", "format": "mooncake", "block_size": 4, "records": records},
        "engine": {"block_size": 4, "num_gpu_blocks": 64, **engine},
        "workers": workers,
    }


def constant(prefill_ms: float, decode_ms: float) -> dict[str, Any]:
    """A profile in which all prefills and all decode steps take the same time."""
    return {
        "prefill_isl": [1.0, 1e5],
        "prefill_ttft_ms": [prefill_ms, prefill_ms],
        "decode_active_kv_tokens": [0.0, 1e7],
        "decode_context_length": [0.0, 1e6],
        "decode_itl": [[decode_ms, decode_ms], [decode_ms, decode_ms]],
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_a_request_without_output_ends_the_run_with_its_name_and_a_remedy(workers: int) -> None:
    result = answer(case(workers, [{"input_length": 8, "output_length": 0}]))
    assert "dead end with 1 in-flight requests" in result["error"]
    assert "request 0 asks for 0 output tokens" in result["error"] and "ask for at least 1" in result["error"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_prompt_that_no_pass_can_take_names_the_limit(workers: int) -> None:
    stuck = case(
        workers,
        [{"input_length": 40, "output_length": 2}, {"input_length": 4, "output_length": 1}],
        enable_chunked_prefill=False,
        max_num_batched_tokens=32,
    )
    message = answer(stuck)["error"]
    assert "max_num_batched_tokens=32" in message and "enable chunked prefill" in message


@pytest.mark.parametrize("workers", [1, 2])
def test_a_request_that_preempts_itself_for_ever_is_refused(workers: int) -> None:
    message = answer(case(workers, [{"input_length": 8, "output_length": 40}], num_gpu_blocks=6))["error"]
    assert "can never finish" in message and "raise num_gpu_blocks to at least 12" in message


@pytest.mark.parametrize("workers", [1, 2])
def test_a_capped_run_goes_on_when_a_request_preempts_itself_for_ever(workers: int) -> None:
    endless = case(
        workers, [{"input_length": 8, "output_length": 40}], num_gpu_blocks=6, enable_prefix_caching=False
    )
    report = answer({**endless, "max_sim_time_ms": 1000.0})["report"]
    assert report["num_requests"] == 1
    assert report["duration_ms"] < 1000.0  # the last token the reference counts; the rest is recomputing


def test_a_capped_run_ends_when_the_clock_stands_still() -> None:
    endless = case(1, [{"input_length": 8, "output_length": 40}], num_gpu_blocks=6)
    assert "can never finish" in answer({**endless, "max_sim_time_ms": 1000.0})["error"]


def test_requests_that_evict_each_other_for_ever_end_the_run() -> None:
    engine = {"num_gpu_blocks": 2, "max_num_batched_tokens": 4, "preemption_mode": "fifo", "aic_nextn": 4}
    arrivals = [{"input_length": 12, "output_length": 6, "timestamp": time} for time in (0, 6)]
    message = answer(case(1, arrivals, block_size=16, **engine))["error"]
    assert "2 requests of a worker preempt each other without end" in message
    assert "raise num_gpu_blocks" in message


def test_scaling_to_zero_before_an_arrival_is_an_error_for_round_robin() -> None:
    scaled = case(1, [{"input_length": 8, "output_length": 2, "timestamp": t} for t in (0, 500)])
    scaled["scaling"] = [{"at_ms": 100.0, "decode": 0}]
    assert "no worker was active" in answer(scaled)["error"]


def test_simulation_errors_are_raised_by_run() -> None:
    with pytest.raises(SimulationError):
        simulation.run(to_scenario(case(2, [{"input_length": 8, "output_length": 0}])))


def test_an_answer_cut_to_the_pool_enters_the_conversation_as_far_as_it_was_generated() -> None:
    turns = case(
        1,
        [
            {"session_id": "a", "input_length": 16, "output_length": 60, "hash_ids": [1, 2, 3, 4]},
            {"session_id": "a", "input_length": 4, "output_length": 1, "hash_ids": [5], "delay": 1},
        ],
        engine_type="trtllm",
        num_gpu_blocks=16,
    )
    del turns["workload"]["records"][1]["timestamp"]
    turns["workload"]["format"] = "mooncake-delta"
    rows = answer(turns)["requests"]
    assert [row["input_length"] for row in rows] == [
        16,
        16 + (64 - 16) + 4,
    ]  # 64 tokens of room, 48 of them answer


@pytest.mark.parametrize("stretch", [1, 1000])
def test_a_tick_at_an_arrival_lets_nobody_overtake_those_who_came_before(stretch: int) -> None:
    records = [{"input_length": 8, "output_length": 1, "timestamp": t} for t in (0, 5, 10)]
    ticking = case(1, records, num_gpu_blocks=100, max_num_seqs=1)
    scenario = to_scenario(ticking, max_stretch_passes=stretch)
    scripted = scenario.with_(scaling=[{"at_ms": 10.0, "workers": 1}])
    first_tokens = simulation.run(scripted).requests["first_token_ms"]
    assert list(first_tokens) == sorted(first_tokens)


@pytest.mark.parametrize("stretch", [1, 1000])
def test_ticks_go_on_when_one_meets_an_arrival_and_the_end_of_a_pass(stretch: int) -> None:
    records = [{"input_length": 8, "output_length": 12, "timestamp": t} for t in (0, 40)]
    ticking = case(1, records, planner_profile_data=constant(10.0, 5.0))
    scripted = to_scenario(ticking, max_stretch_passes=stretch).with_(
        scaling=[{"at_ms": 40.0, "workers": 3}, {"at_ms": 50.0, "workers": 4}]
    )
    fleet = simulation.run(scripted).fleet
    assert list(fleet.query("cause == 'added'")["at_ms"]) == [40.0, 50.0]


def empty_prompts(engine_type: str, blocks: int) -> dict[str, Any]:
    """Two requests without a prompt, 60 tokens each, on one worker with blocks of 8."""
    records = [
        {"request_id": name, "timestamp": 0, "input_length": 0, "output_length": 60, "hash_ids": [1]}
        for name in "ab"
    ]
    return {
        "workload": {"kind": "trace", "format": "agentic_mooncake", "block_size": 8, "records": records},
        "engine": {"engine_type": engine_type, "block_size": 8, "num_gpu_blocks": blocks},
        "workers": 1,
    }


def test_an_empty_prompt_returns_without_a_look_at_the_room_and_takes_turns_with_the_other() -> None:
    report = answer(empty_prompts("vllm", 13))["report"]
    assert report["duration_ms"] == 1925.2046169999992  # the reference's figures
    assert report["max_itl_ms"] == 330.92769199999975


def test_an_empty_prompt_is_admitted_by_trtllm_even_when_it_will_be_stuck() -> None:
    assert "dead end with 2 in-flight requests" in answer(empty_prompts("trtllm", 13))["error"]


@pytest.mark.parametrize("stretch", [1, 1000])
def test_who_arrives_because_another_was_rejected_joins_behind_the_pass_that_just_began(stretch: int) -> None:
    loop = case(
        2,
        [
            {"hash_ids": ids, "input_length": 64 * len(ids), "output_length": output, "timestamp": 0}
            for ids, output in (([1], 2), ([2], 9), ([5] * 5, 1), ([3], 1))
        ],
        block_size=64,
        num_gpu_blocks=4,
    )
    loop["workload"]["block_size"] = 64
    report = answer({**loop, "concurrency": 2}, max_stretch_passes=stretch)["report"]
    assert report["max_ttft_ms"] == 75.55363499999999  # the reference's figure


def test_only_a_token_of_this_very_pass_lets_a_sequence_join_the_others_in_lockstep() -> None:
    """Passes that only recompute take no time, so that tokens of two passes can have one time stamp."""
    records = [
        {"hash_ids": [1, 1, 1], "input_length": 2, "output_length": 4, "timestamp": 0},
        {"hash_ids": [1, 1, 1], "input_length": 1, "output_length": 2, "timestamp": 0},
    ]
    tight = {"block_size": 2, "num_gpu_blocks": 4, "max_num_batched_tokens": 2, "preemption_mode": "fifo"}
    load = case(1, records, **tight)
    load["workload"]["block_size"] = 2
    rows = answer(load)["requests"]
    assert [row["last_token_ms"] for row in rows] == [
        145.98839299999997,
        114.21964299999999,
    ]  # the reference's


@pytest.mark.parametrize("stretch", [1, 1000])
def test_a_pass_has_ended_before_those_arrive_who_come_at_its_end(stretch: int) -> None:
    """Worker 1 has begun its next pass when a rejection on worker 0 brings it another request at the same instant."""
    too_long, short = [2] * 15, [2]
    turns = [
        {"session_id": "b", "hash_ids": too_long, "timestamp": 0.0},
        {"hash_ids": [101], "output_length": 3, "timestamp": 0.0},
        {"session_id": "b", "hash_ids": short},
        {"session_id": "a", "hash_ids": too_long, "timestamp": 20.0},
        {"session_id": "a", "hash_ids": short},
        {"session_id": "b", "hash_ids": short, "delay": 5.0},
    ]
    load = case(2, [], num_gpu_blocks=14, planner_profile_data=constant(10.0, 5.0))
    load["workload"]["records"] = [{"output_length": 1, **turn} for turn in turns]
    assert answer(load, max_stretch_passes=stretch)["report"]["duration_ms"] == 40.0  # as the reference


@pytest.mark.parametrize("stretch", [1, 1000])
def test_passes_are_shown_in_the_order_of_the_rounds_they_began_in(stretch: int) -> None:
    """A ready event holds back the end of a pass of worker 0, which goes on in the second round, behind worker 1."""
    records = [
        {"output_length": output, "timestamp": at_ms} for output, at_ms in ((17, 15.0), (11, 25.0), (1, 30.0))
    ]
    load = case(1, records, startup_time=0.005, planner_profile_data=constant(0.0, 1.0))
    for record in records:
        record["hash_ids"] = record["hash_ids"][:1]
    ticking = {**load, "poll_ms": 5.0, "scaling": [{"at_ms": 10.0, "decode": 2}]}
    last = answer(ticking, max_stretch_passes=stretch)["ticks"][-1]
    assert [shown["worker_id"] for shown in last["decode_fpm_snapshots"]] == [1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("stretch", [1, 1000])
def test_a_startup_too_short_for_the_clock_is_over_before_the_next_arrival(stretch: int) -> None:
    """The second turn of the session arrives where its first one ended, and finds new workers."""
    turns = [
        {"hash_ids": [1], "timestamp": 0.0},
        {"hash_ids": [2], "timestamp": 10.0, "session_id": "s"},
        {"hash_ids": [1], "session_id": "s"},
    ]
    load = case(1, [], block_size=64, startup_time=1e-20, speedup_ratio=1e12)
    load["workload"] |= {"block_size": 64, "records": [{"output_length": 1, **turn} for turn in turns]}
    scaled = {**load, "scaling": [{"at_ms": 10.0, "decode": 4}]}
    assert answer(scaled, max_stretch_passes=stretch)["report"]["prefix_cache_reused_ratio"] == 0.0


@pytest.mark.parametrize("stretch", [1, 1000])
def test_passes_that_a_coarse_clock_does_not_feel_keep_their_places(stretch: int) -> None:
    turns = [
        {"hash_ids": [1], "output_length": 1, "timestamp": 0.0},
        {"hash_ids": [2], "output_length": 9, "timestamp": 4.3e17},
        {"hash_ids": [1], "output_length": 1, "timestamp": 7e17},
    ]
    load = case(1, [], block_size=8, num_gpu_blocks=2)
    load["workload"] |= {"block_size": 8, "records": [{"input_length": 1, **turn} for turn in turns]}
    ticks = answer({**load, "poll_ms": 6e17}, max_stretch_passes=stretch)["ticks"]
    shown = [s["num_prefill_requests"] for s in ticks[1]["decode_fpm_snapshots"]]
    assert shown[:3] == [1, 1, 0]  # the prefill of the second request before its decode steps


def test_of_many_stuck_workers_two_are_told_one_by_one() -> None:
    message = answer(case(5, [{"input_length": 8, "output_length": 0} for _ in range(5)]))["error"]
    assert "worker 1: " in message and "worker 2: " not in message
    assert message.endswith("; 3 more workers are stuck")


def test_a_worker_that_can_go_on_again_is_not_started_while_it_is_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy_at_start = []
    start = Fleet.start

    def noted(self: Fleet, worker: Worker, now_ms: float, max_passes: int) -> Any:
        busy_at_start.append(worker.busy)
        return start(self, worker, now_ms, max_passes)

    monkeypatch.setattr(Fleet, "start", noted)
    records = [
        {"input_length": 8, "output_length": 30 if index else 0, "timestamp": 20 * index}
        for index in range(12)
    ]
    targets = [{"at_ms": at_ms, "workers": 2 + k % 2} for k, at_ms in enumerate((45.0, 105.0, 150.0, 300.0))]
    with pytest.raises(SimulationError, match="asks for 0 output tokens"):
        simulation.run(to_scenario(case(2, records)).with_(scaling=targets))
    assert busy_at_start and not any(busy_at_start)
