"""Target tracking: alarms of one-minute periods, cooldowns, starting workers (`spec 10, 0 and 5`)."""

from __future__ import annotations

from typing import Any

import dynamo_sim as ds
from dynamo_sim.autoscaling import Bounds, Decision, TargetTrackingPolicy
from dynamo_sim.scenario.autoscaler.target_tracking import TargetTrackingScaling
from tests.autoscaling.policies.policy_driver import ask


def tracking(bounds: Bounds | None = None, **keys: Any) -> TargetTrackingPolicy:
    return TargetTrackingPolicy(
        TargetTrackingScaling.model_validate({"metric": "kv_usage", "target": 50, **keys}), bounds
    )


def at_once(**keys: Any) -> TargetTrackingPolicy:
    """With alarms that need one period only."""
    return tracking(Bounds(1, 64), scale_out_periods=1, scale_in_periods=1, **keys)


def test_the_defaults_are_those_of_an_ecs_service_or_a_sagemaker_endpoint() -> None:
    spec = tracking().spec
    assert (spec.scale_out_cooldown_s, spec.scale_in_cooldown_s, spec.warmup_s) == (300, 300, 300)
    assert (spec.scale_out_periods, spec.scale_in_periods, spec.margin) == (3, 15, 0.1)
    assert tracking().period_s == 60
    assert str(tracking().query) == "avg avg_over_time(kv_usage)"  # a datapoint is the mean of its minute


def test_a_scale_out_needs_three_periods_above_the_target() -> None:
    policy = tracking()
    found = [ask(policy, 60.0 * k, 4, kv_usage=v) for k, v in enumerate([60, 60, 50, 60, 60, 60])]
    assert [d.target for d in found] == [4, 4, 4, 4, 4, 5]
    assert [d.reason for d in found][1:3] == ["above target in 2 of 3 periods", "on target"]


def test_a_scale_in_needs_fifteen_periods_below_nine_tenths_of_the_target() -> None:
    policy = tracking()
    found = [ask(policy, 60.0 * k, 4, kv_usage=44) for k in range(14)]
    assert {d.target for d in found} == {4} and found[-1].reason == "below target in 14 of 15 periods"
    assert ask(policy, 840, 4, kv_usage=30).target == 3
    assert all(ask(tracking(), 60.0 * k, 4, kv_usage=45).reason == "on target" for k in range(20))


def test_a_period_without_data_is_no_datapoint() -> None:
    policy = tracking()
    targets = [ask(policy, 60.0 * k, 4, kv_usage=v).target for k, v in enumerate([60, None, 60, None, 60])]
    assert targets == [4, None, 4, None, 5]
    assert ask(policy, 700, 8) == Decision(
        None, "no data", values={"avg avg_over_time(kv_usage)": None, "target": 50}
    )


def test_starting_workers_are_no_capacity_so_the_same_overload_is_answered_once() -> None:
    policy = at_once()
    assert ask(policy, 0, 4, kv_usage=62.5).target == 5
    again = ask(policy, 60, 5, starting=1, kv_usage=62.5)
    assert (again.target, again.reason) == (5, "added already")
    assert ask(policy, 120, 5, warming=1, kv_usage=62.5).target == 5
    assert ask(policy, 180, 5, warming=1, kv_usage=75).target == 6


def test_a_larger_scale_out_does_not_wait_for_the_cooldown_of_the_last_one() -> None:
    policy = at_once()
    assert ask(policy, 0, 4, kv_usage=100).target == 8
    assert ask(policy, 60, 8, kv_usage=100).target == 16


def test_during_the_cooldown_no_more_is_asked_for_than_was() -> None:
    policy = at_once()
    assert ask(policy, 0, 4, kv_usage=100).target == 8
    lost = ask(policy, 60, 6, kv_usage=60)  # two workers are gone; 6 * 60 / 50 is 8 again
    assert (lost.target, lost.reason) == (6, "scale-out cooldown")
    assert ask(policy, 300, 6, kv_usage=60).target == 8


def test_a_scale_in_waits_for_its_cooldown_and_a_scale_out_never_for_a_scale_in() -> None:
    policy = at_once()
    assert ask(policy, 0, 8, kv_usage=25).target == 4
    waits = [ask(policy, 60.0 * k, 4, kv_usage=25) for k in range(1, 5)]
    assert {d.reason for d in waits} == {"scale-in cooldown"} and {d.target for d in waits} == {4}
    assert ask(policy, 300, 4, kv_usage=25).target == 2
    assert ask(policy, 360, 2, kv_usage=100).target == 4


def test_nobody_is_taken_away_while_a_worker_warms_up() -> None:
    policy = at_once(scale_in_cooldown_s=0)
    held = ask(policy, 60, 10, warming=6, kv_usage=25)
    assert (held.target, held.reason) == (10, "warming up")
    assert ask(policy, 400, 10, kv_usage=25).target == 5


def test_a_total_compares_with_what_the_ready_workers_should_carry() -> None:
    policy = at_once(metric="in_flight", target=10, target_kind="total", scale_in_cooldown_s=0)
    assert ask(policy, 0, 4, in_flight=41).target == 5
    assert ask(policy, 1, 4, in_flight=37).target == 4  # inside the margin
    assert ask(policy, 2, 4, in_flight=12).target == 2
    assert ask(policy, 3, 0, in_flight=12).target == 2  # from no worker


def test_reasons_name_the_limit_that_held() -> None:
    policy = tracking(Bounds(4, 6), scale_out_periods=1, scale_in_periods=1)
    full, empty = ask(policy, 0, 6, kv_usage=100), ask(policy, 60, 4, kv_usage=0.5)
    assert (full.target, full.desired, full.reason) == (6, 12, "at the largest fleet")
    assert (empty.target, empty.desired, empty.reason) == (4, 1, "at the smallest fleet")
    assert ask(policy, 120, 5, kv_usage=44).reason == "one worker less would be too few"


CASCADE = {
    "name": "cascade",
    "workload": {"kind": "synthetic", "input_tokens": 256, "output_tokens": 1000, "request_count": 1200},
    "limits": {"concurrency": 24},
    "fleet": {"workers": 1, "engine": {"engine_type": "vllm", "startup_time": 180}},
    "autoscaler": {
        "policy": {"kind": "target_tracking", "metric": "in_flight", "target": 10},
        "min_workers": 1,
        "max_workers": 64,
    },
}


def test_24_requests_in_flight_and_a_target_of_10_make_three_workers_however_slow_they_start() -> None:
    assert ds.run(ds.Scenario.from_dict(CASCADE)).decisions["target"].max() == 3
    often = {**CASCADE, "autoscaler": {**CASCADE["autoscaler"], "period_s": 15}}  # type: ignore[dict-item]
    assert ds.run(ds.Scenario.from_dict(often)).decisions["target"].max() == 3
