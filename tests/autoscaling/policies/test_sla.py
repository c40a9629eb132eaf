"""The sla policy: its model of a pass, its estimates, and what differs from the planner's own rules.

Rules: `spec 10, 6.5 and 6.7`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynamo_sim as ds
from dynamo_sim.autoscaling import Decision, EngineLimits, FleetView, SlaPolicy, StaticView
from dynamo_sim.autoscaling.policies.sla.capacity import Traffic, requests_per_second
from dynamo_sim.autoscaling.policies.sla.pass_model import PassModel, least_squares_from_zero
from dynamo_sim.autoscaling.policies.sla.predictors import ConstantPredictor, KalmanPredictor
from dynamo_sim.autoscaling.policies.sla.worker_load import Estimator, WorkerLoad
from dynamo_sim.scenario.autoscaler.sla import SlaScaling

TRUE = (0.004, 20e-6, 50e-6, 0.2e-6)
"""Seconds of a pass, a prefill token, a decode request, a token held."""


def snapshot(worker: int, prefill: int, decodes: int, kv: int, queued: int = 0) -> dict[str, Any]:
    wall = TRUE[0] + TRUE[1] * prefill + TRUE[2] * decodes + TRUE[3] * kv
    return {
        "worker_id": worker,
        "wall_time": wall,
        "sum_prefill_tokens": prefill,
        "num_decode_requests": decodes,
        "sum_decode_kv_tokens": kv,
        "num_queued_decode": 0,
        "sum_queued_decode_kv_tokens": 0,
        "sum_queued_prefill_tokens": queued,
    }


def varied(worker: int = 0) -> list[dict[str, Any]]:
    return [snapshot(worker, 100 * (k % 4), 3 + k, 900 * (k % 5) + 400) for k in range(12)]


def tick(
    snapshots: list[dict[str, Any]], requests: int = 0, isl: float = 1000.0, osl: float = 100.0
) -> StaticView:
    traffic = {
        "duration_s": 5.0,
        "num_req": requests,
        "avg_isl": isl if requests else 0.0,
        "avg_osl": osl if requests else 0.0,
        "avg_kv_hit_rate": 0.0,
        "avg_accept_length": 1.0,
    }
    return StaticView(
        {"requests_started": requests, "router_queue": 0},
        ticks={"decode_fpm_snapshots": snapshots, "traffic": traffic},
    )


def test_the_model_learns_a_linear_engine() -> None:
    model = PassModel()
    model.observe(varied()[:4])
    assert not model.is_ready
    model.observe(varied())
    assert model.is_ready
    assert model.coefficients == pytest.approx(TRUE, rel=1e-6)
    assert model.seconds(500, [1, 2], 100) == pytest.approx(
        [TRUE[0] + 500 * TRUE[1] + n * TRUE[2] + 100 * TRUE[3] for n in (1, 2)]
    )


def test_many_decode_passes_do_not_push_out_the_few_that_price_a_prefill() -> None:
    model = PassModel()
    model.observe(varied())
    model.observe(snapshot(0, 0, 20 + k % 7, 20_000 + 100 * k) for k in range(5000))
    assert model.coefficients[1] == pytest.approx(TRUE[1], rel=1e-3)


def test_without_a_prefill_there_is_no_model_in_which_it_costs_nothing() -> None:
    model = PassModel()
    model.observe(snapshot(0, 0, k, 500 * k) for k in range(1, 80))
    assert not model.is_ready
    model.observe([snapshot(0, 1000, 3, 1500)])
    assert model.is_ready


def test_no_coefficient_is_negative_and_what_never_varied_has_none() -> None:
    work = np.array([[1.0, 0.0, k, 7.0] for k in range(1, 9)])
    falling = least_squares_from_zero(work, np.array([9.0 - k for k in range(1, 9)]))
    assert (falling >= 0).all() and falling[2] == 0
    rising = least_squares_from_zero(work, np.array([2.0 * k for k in range(1, 9)]))
    assert rising == pytest.approx([0, 0, 2, 0])


def test_a_queue_is_computed_in_chunks_beside_the_decodes() -> None:
    model = PassModel()
    model.observe(varied())
    estimator = Estimator(model, Traffic(1000, 100), 2048)
    load = WorkerLoad(decodes=10, decode_kv=5000, queued_prefill=3000)
    beside = TRUE[2] * 10 + TRUE[3] * 5000
    two_passes = 2 * (TRUE[0] + beside) + TRUE[1] * 4000
    assert estimator.ttft_ms(load) == pytest.approx(two_passes * 1000, rel=1e-6)
    itl = TRUE[0] + TRUE[2] * 11 + TRUE[3] * (5000 + 1050)
    assert estimator.itl_ms(load) == pytest.approx(itl * 1000, rel=1e-6)


def test_capacity_is_the_best_batch_within_the_targets() -> None:
    model = PassModel()
    model.observe(varied())
    limits = EngineLimits(max_kv_tokens=200_000, max_num_batched_tokens=8192, max_num_seqs=128)
    traffic = Traffic(1000, 100)
    loose = requests_per_second(model, limits, traffic, 1000, 100)
    tight = requests_per_second(model, limits, traffic, 1000, 8)
    impossible = requests_per_second(model, limits, traffic, 1000, 0.001)
    assert tight < loose == impossible
    cached = requests_per_second(model, limits, Traffic(1000, 100, hit_rate=0.9), 1000, 100)
    assert cached > loose


def sla(**more: Any) -> SlaPolicy:
    settings = SlaScaling(ttft_ms=200.0, itl_ms=20.0, **{"mode": "load", **more})
    return SlaPolicy(
        settings, EngineLimits(max_kv_tokens=100_000, max_num_batched_tokens=8192, max_num_seqs=256)
    )


def evaluate(policy: SlaPolicy, now_s: float, fleet: FleetView, view: StaticView) -> Decision:
    return policy.decide(now_s, view, fleet)


def busy(worker: int, queued: int) -> dict[str, Any]:
    return snapshot(worker, 0, 20, 20_000, queued)


def test_without_a_model_there_is_no_decision() -> None:
    decision = evaluate(sla(), 5, FleetView.of(2), tick([busy(0, 0)]))
    assert (decision.target, decision.reason) == (None, "insufficient_data")


def test_up_needs_every_worker_over_its_target() -> None:
    policy = sla(strict=True)
    one = evaluate(policy, 5, FleetView.of(2), tick([*varied(), busy(0, 30_000), busy(1, 6_000)], 10))
    assert one.reason == "no_change"
    both = evaluate(policy, 10, FleetView.of(2), tick([busy(0, 30_000), busy(1, 30_000)], 10))
    assert (both.target, both.reason) == (3, "scale_up")


def test_up_may_add_what_the_median_worker_needs() -> None:
    policy = sla()
    decision = evaluate(policy, 5, FleetView.of(2), tick([*varied(), busy(0, 30_000), busy(1, 30_000)], 10))
    assert decision.target == 8  # 30 000 tokens at 20 us are three times too many, beside the decodes
    capped = evaluate(
        sla(max_step=2), 5, FleetView.of(2), tick([*varied(), busy(0, 30_000), busy(1, 30_000)], 10)
    )
    assert capped.target == 4


def test_starting_workers_count_as_capacity() -> None:
    policy = sla()
    decision = evaluate(
        policy, 5, FleetView.of(2, starting=7), tick([*varied(), busy(0, 30_000), busy(1, 30_000)], 10)
    )
    assert (decision.target, decision.reason) == (9, "starting workers suffice")
    strict = evaluate(sla(strict=True), 5, FleetView.of(2, starting=1), tick([*varied(), busy(0, 0)]))
    assert strict.reason == "scaling_in_progress"


def test_down_looks_at_what_the_survivors_would_have() -> None:
    policy = sla()
    idle = [snapshot(0, 0, 1, 800), snapshot(1, 0, 1, 800)]
    assert evaluate(policy, 5, FleetView.of(2), tick([*varied(), *idle], 10)).target == 1
    full = [snapshot(0, 0, 60, 60_000), snapshot(1, 0, 60, 60_000)]
    assert (
        evaluate(policy, 10, FleetView.of(2), tick(full, 10)).target == 2
    )  # 120 000 tokens do not fit in one


def test_a_quiet_worker_counts_as_idle_unless_strict() -> None:
    for strict, targets in ((False, [2, 1]), (True, [2, 2])):
        policy = sla(strict=strict)
        full = [busy(0, 7_000), busy(1, 7_000)]
        found = [evaluate(policy, 5, FleetView.of(2), tick([*varied(), *full], 10)).target]
        found.append(evaluate(policy, 20, FleetView.of(2), tick([])).target)
        assert found == targets


def test_a_worker_without_a_pass_blocks_the_strict_rules() -> None:
    policy = sla(strict=True)
    assert evaluate(policy, 5, FleetView.of(2), tick(varied(0), 3)).reason == "worker_count_mismatch"
    assert evaluate(sla(strict=True), 5, FleetView.of(2), tick([])).reason == "no_fpm_data"


def test_throughput_plans_for_the_next_interval() -> None:
    policy = sla(mode="throughput", throughput_interval_s=10)
    assert evaluate(policy, 5, FleetView.of(1), tick(varied(), 100)).reason == "between intervals"
    planned = evaluate(policy, 10, FleetView.of(1), tick([], 300))
    assert planned.values["demand_rps"] == 40.0
    assert planned.reason == "throughput" and planned.target is not None
    capacity = planned.values["capacity_rps"]
    assert capacity is not None and planned.target == -(-40 // capacity)


def test_demand_is_what_arrived_not_what_an_overloaded_fleet_finished() -> None:
    policy = sla(mode="throughput", throughput_interval_s=10)
    finished = tick(varied(), 100)
    finished.values = {"requests_started": 300, "router_queue": 60}
    evaluate(policy, 5, FleetView.of(1), finished)
    rest = tick([], 100)
    rest.values = {"requests_started": 140, "router_queue": 0}  # 60 of them had waited in front
    assert evaluate(policy, 10, FleetView.of(1), rest).values["demand_rps"] == 44.0


OVERLOADED = {
    "name": "overloaded",
    "workload": {
        "kind": "generated",
        "arrivals": {"shape": "constant", "rate_rps": 6},
        "duration_s": 240,
        "input_tokens": 16000,
        "output_tokens": 100,
    },
    "fleet": {"workers": 1, "engine": {"engine_type": "vllm", "startup_time": 20}},
    "sla": {"ttft_ms": 2000, "itl_ms": 100},
    "autoscaler": {"policy": {"kind": "sla", "mode": "throughput"}, "min_workers": 1, "max_workers": 12},
}


def test_the_first_plan_of_an_overloaded_worker_is_what_the_offered_load_needs() -> None:
    decisions = ds.run(ds.Scenario.from_dict(OVERLOADED)).decisions
    plans = decisions[decisions["value:demand_rps"].notna()].head(4)
    assert plans["value:demand_rps"].to_numpy() == pytest.approx(6.0, abs=0.1)  # a worker finishes about 2/s
    assert plans["target"].tolist() == [3, 3, 3, 3]


def test_the_capacity_of_a_worker_does_not_jump_when_prefills_are_rare() -> None:
    long_answers = {"arrivals": {"shape": "poisson", "rate_rps": 2}, "output_tokens": 500, "duration_s": 600}
    scenario = {**OVERLOADED, "workload": {**OVERLOADED["workload"], **long_answers}}  # type: ignore[dict-item]
    decisions = ds.run(ds.Scenario.from_dict(scenario).with_(**{"fleet.workers": 4})).decisions
    capacity = decisions["value:capacity_rps"].dropna()
    assert len(capacity) >= 9 and capacity.max() < 1.3 * capacity.min()
    assert decisions["target"].iloc[-1] == 2


def test_a_reason_names_the_smallest_fleet_when_it_held() -> None:
    policy = sla(min_workers=2)
    idle = [snapshot(0, 0, 1, 800), snapshot(1, 0, 1, 800)]
    held = evaluate(policy, 5, FleetView.of(2), tick([*varied(), *idle], 10))
    assert (held.target, held.desired, held.reason) == (2, 1, "at the smallest fleet")


def test_with_both_the_plan_is_a_floor() -> None:
    policy = sla(mode="both", throughput_interval_s=5)
    idle = [snapshot(w, 0, 1, 800) for w in range(4)]
    decision = evaluate(policy, 5, FleetView.of(4), tick([*varied(), *idle], 1500))
    assert policy.floor is not None and policy.floor > 4
    assert decision.target == policy.floor


def test_a_kalman_forecast_may_be_asked_for_twice() -> None:
    filtered = KalmanPredictor()
    for value in (0.0, 5.0, 9.0):
        filtered.add(value)
    assert filtered.predict() == filtered.predict()
    steady = KalmanPredictor()
    for value in (5.0, 5.0):
        steady.add(value)
        steady.add(value)  # without a forecast in between
    assert steady.predict() == pytest.approx(5.0)
    constant = ConstantPredictor()
    constant.add(float("nan"))
    assert constant.predict() == 0.0


@pytest.mark.parametrize(
    "wrong",
    [{"mode": "x"}, {"predictor": "arima"}, {"max_step": 0}, {"throughput_interval_s": 1, "mode": "both"}],
)
def test_settings_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        SlaScaling(ttft_ms=200, itl_ms=20, **wrong)
