"""Startups of differing length, and workers that are killed before they have drained (`spec 10, 9 and 10`)."""

from __future__ import annotations

from typing import Any

import pytest

import dynamo_sim as ds
from dynamo_sim.fleet.startup import startup_durations
from dynamo_sim.scenario.startup import Startup


def scenario(workload: dict[str, Any] | None = None, **more: Any) -> ds.Scenario:
    load = {
        "kind": "synthetic",
        "input_tokens": 64,
        "output_tokens": 200,
        "request_count": 60,
        "arrival_interval_ms": 20,
    }
    return ds.Scenario.from_dict(
        {"name": "x", "workload": load if workload is None else workload, "fleet": {"workers": 2}, **more}
    )


@pytest.mark.parametrize(
    ("startup", "low_s", "high_s"),
    [
        ({"uniform": {"min_s": 5, "max_s": 9}}, 5, 9),
        ({"lognormal": {"median_s": 40, "p95_s": 80}, "max_s": 100}, 5, 100),
        ({"empirical_s": [3, 7]}, 3, 7),
    ],
)
def test_every_worker_draws_its_own_duration(startup: dict[str, Any], low_s: float, high_s: float) -> None:
    durations = startup_durations(Startup.model_validate(startup), seed=4)
    drawn = [durations(worker_id) for worker_id in range(200)]
    assert all(low_s * 1000 <= ms <= high_s * 1000 for ms in drawn)
    assert len(set(drawn)) > 1
    assert drawn == [durations(worker_id) for worker_id in range(200)]
    assert drawn != [startup_durations(Startup.model_validate(startup), seed=5)(i) for i in range(200)]


def test_measured_durations_can_be_taken_in_order() -> None:
    durations = startup_durations(Startup(empirical_s=(1.0, 2.0, 3.0), in_order=True), seed=0)
    assert [durations(worker_id) for worker_id in (2, 3, 4)] == [3000.0, 1000.0, 2000.0]


def test_added_workers_are_ready_when_their_own_startup_is_over() -> None:
    fleet = {"workers": 2, "startup": {"empirical_s": [0.1, 0.2, 0.3], "in_order": True}}
    result = ds.run(scenario(fleet=fleet, scaling=[{"at_ms": 50, "workers": 4}]))
    ready = result.fleet.query("cause == 'ready'")
    assert list(ready["at_ms"]) == [150.0, 350.0]  # ids 2 and 3 take 0.3 and 0.1 s
    assert list(ready["worker_ids"]) == [(3,), (2,)]


@pytest.mark.parametrize(
    ("startup", "message"),
    [
        ({}, "needs exactly one of uniform, lognormal and empirical_s"),
        ({"uniform": {"min_s": 5, "max_s": 4}}, "found 4; must be at least min_s"),
        ({"lognormal": {"median_s": 5, "p95_s": 4}}, "found 4; must be at least median_s"),
    ],
)
def test_impossible_distributions_are_refused(startup: dict[str, Any], message: str) -> None:
    with pytest.raises(ds.ScenarioError, match=message):
        scenario(fleet={"startup": startup})


def test_two_ways_to_say_the_startup_are_refused() -> None:
    with pytest.raises(ds.ScenarioError, match="cannot be given together"):
        scenario(fleet={"engine": {"startup_time": 3}, "startup": {"empirical_s": [1]}})


@pytest.mark.parametrize("engine", ["vllm", "trtllm", "sglang"])
@pytest.mark.parametrize("stretch", [1, 1000])
def test_a_killed_worker_s_requests_fail_and_all_others_end(engine: str, stretch: int) -> None:
    fleet = {"workers": 2, "drain_grace_s": 0.3, "engine": {"engine_type": engine}}
    limits = {"max_stretch_passes": stretch}
    result = ds.run(scenario(fleet=fleet, limits=limits, scaling=[{"at_ms": 600, "workers": 1}]))
    requests = result.requests
    failed = requests[requests["outcome"] == "failed"]
    assert len(failed) > 0 and set(requests["outcome"]) == {"completed", "failed"}
    assert (failed["ended_ms"] == 900.0).all() and (failed["emitted_tokens"] < 200).all()
    assert (failed["last_token_ms"].dropna() <= 900.0).all()
    assert result.fleet["cause"].iloc[-1] == "killed"
    assert f"{len(failed)} requests failed" in result.warnings[0]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_what_a_killed_worker_had_done_does_not_depend_on_stretches(engine: str) -> None:
    fleet = {"workers": 2, "drain_grace_s": 0.3, "engine": {"engine_type": engine}}
    results = [
        ds.run(
            scenario(fleet=fleet, limits={"max_stretch_passes": most}, scaling=[{"at_ms": 600, "workers": 1}])
        )
        for most in (1, 1000)
    ]
    assert dict(results[0].summary) == dict(results[1].summary)
    assert results[0].requests.equals(results[1].requests)
    assert results[0].passes.equals(results[1].passes)


def test_a_conversation_goes_on_after_a_failed_turn() -> None:
    chat = {
        "kind": "synthetic",
        "input_tokens": 64,
        "output_tokens": 200,
        "request_count": 8,
        "turns_per_session": 2,
        "arrival_interval_ms": 20,
    }
    fleet = {"workers": 2, "drain_grace_s": 0.1}
    result = ds.run(scenario(chat, fleet=fleet, scaling=[{"at_ms": 300, "workers": 1}]))
    assert len(result.requests) == 16
    assert (result.requests["outcome"] == "failed").sum() > 0


def test_without_a_deadline_everything_ends() -> None:
    result = ds.run(scenario(scaling=[{"at_ms": 600, "workers": 1}]))
    assert set(result.requests["outcome"]) == {"completed"} and result.warnings == []


def test_failed_requests_never_count_as_completed() -> None:
    fleet = {"workers": 2, "drain_grace_s": 0.3}
    result = ds.run(scenario(fleet=fleet, scaling=[{"at_ms": 600, "workers": 1}], sla={"e2e_ms": 10**9}))
    completed = result.requests[result.requests["outcome"] == "completed"]
    failed = (result.requests["outcome"] == "failed").sum()
    assert result.summary.failed_requests == failed > 0
    assert result.summary.completed_requests == result.summary.goodput_completed_requests == len(completed)
    assert result.summary.mean_e2e_latency_ms == pytest.approx(
        (completed["last_token_ms"] - completed["arrival_ms"]).mean()
    )


def test_workers_taken_back_before_they_start_end_the_run_with_a_reason() -> None:
    class Flip:
        reads = ()
        period_s = 1.0
        target = 0

        def decide(self, now_s: float, view: Any, fleet: Any) -> int:
            self.target = 3 - self.target
            return self.target

    late = {
        "kind": "synthetic",
        "input_tokens": 8,
        "output_tokens": 2,
        "request_count": 3,
        "arrival_interval_ms": 5000,
    }
    with pytest.raises(ds.SimulationError, match="takes them back before their startup is over"):
        ds.run(scenario(late, fleet={"workers": 1, "engine": {"startup_time": 60}}), policy=Flip())
