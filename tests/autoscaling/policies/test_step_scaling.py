"""Alarms with steps, as step scaling of EC2 Auto Scaling (`spec 10, 0 and 5`)."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.autoscaling import Bounds, FleetView, StaticView, StepScalingPolicy, WorkerPhase, WorkerView
from dynamo_sim.scenario.autoscaler.step_scaling import AlarmSpec, StepScaling
from tests.autoscaling.policies.policy_driver import ask


def alarm(direction: str, threshold: float, *steps: tuple[Any, Any, float], **more: Any) -> AlarmSpec:
    found = [{"lower": lower, "upper": upper, "adjustment": float(change)} for lower, upper, change in steps]
    given = {"metric": "kv_usage", "threshold": threshold, "direction": direction, "steps": found, **more}
    return AlarmSpec.model_validate(given)


def test_warming_workers_count_as_added_and_forbid_scale_in() -> None:
    up = alarm("up", 50, (0, 20, 1), (20, None, 4))
    down = alarm("down", 10, (None, 0, -1))
    policy = StepScalingPolicy(StepScaling(alarms=(up, down), warmup_s=100))
    assert ask(policy, 0, 3, kv_usage=60).target == 4
    assert ask(policy, 30, 4, warming=1, kv_usage=60).target == 4  # the same step again adds nothing
    assert ask(policy, 60, 4, warming=1, kv_usage=80).target == 7  # only the difference to the higher step
    assert ask(policy, 90, 7, warming=4, kv_usage=0).reason == "warming up"
    assert ask(policy, 160, 7, kv_usage=0).target == 6


def test_an_alarm_needs_enough_of_its_last_means() -> None:
    policy = StepScalingPolicy(
        StepScaling(alarms=(alarm("up", 50, (0, None, 1), evaluation_periods=3, datapoints=2),))
    )
    targets = [ask(policy, t, 2, kv_usage=v).target for t, v in enumerate([60, 10, None, 60, 60, 60])]
    assert targets == [2, 2, 2, 2, 3, 3]
    with pytest.raises(ValueError, match="datapoints"):
        alarm("up", 50, (0, None, 1), evaluation_periods=2, datapoints=3)


def percent(direction: str, *steps: tuple[Any, Any, float], **more: Any) -> AlarmSpec:
    return alarm(direction, 50, *steps, adjustment_type="PercentChangeInCapacity", **more)


def test_the_worked_example_of_the_guide() -> None:
    """EC2 Auto Scaling guide, step and simple scaling policies: thresholds at 50, +10 % from 60, +30 % from 70."""
    up = percent("up", (0, 10, 0), (10, 20, 10), (20, None, 30))
    down = percent("down", (-10, 0, 0), (-20, -10, -10), (None, -20, -30))
    policy = StepScalingPolicy(StepScaling(alarms=(up, down), warmup_s=0, scale_in_cooldown_s=0))
    sizes = [10]
    for at_s, load in enumerate([55, 60, 70, 45, 40, 30]):
        sizes.append(ask(policy, at_s, sizes[-1], kv_usage=load).target or 0)
    assert sizes == [10, 10, 11, 14, 14, 13, 10]


def test_a_step_is_relative_to_the_workers_that_have_warmed_up() -> None:
    policy = StepScalingPolicy(StepScaling(alarms=(percent("up", (10, 20, 10), (20, None, 30)),)))
    assert ask(policy, 0, 10, kv_usage=60).target == 11
    assert ask(policy, 60, 11, starting=1, kv_usage=62).target == 11
    assert ask(policy, 120, 11, warming=1, kv_usage=70).target == 13  # 30 % of 10, not of 11


def test_by_default_workers_warm_up_for_300_s_so_half_as_many_again_are_added_once() -> None:
    policy = StepScalingPolicy(StepScaling(alarms=(percent("up", (0, None, 50)),)))
    old = [WorkerView(i, WorkerPhase.READY, 0.0, 0.0) for i in range(4)]
    new = [WorkerView(4 + i, WorkerPhase.READY, 60.0, 150.0) for i in range(2)]
    view = StaticView({"kv_usage": 80})
    assert policy.decide(60, view, FleetView(tuple(old))).target == 6
    later = [policy.decide(at_s, view, FleetView((*old, *new))).target for at_s in (180, 420, 480)]
    assert later == [6, 6, 9]  # warm 300 s after they were ready, at 450 s
    assert policy.period_s == 60


def test_a_second_scale_in_waits_for_its_cooldown_which_a_scale_out_ends() -> None:
    up, down = alarm("up", 50, (0, None, 2)), alarm("down", 10, (None, 0, -1))
    policy = StepScalingPolicy(StepScaling(alarms=(up, down), warmup_s=0))
    assert ask(policy, 0, 5, kv_usage=0).target == 4
    assert ask(policy, 60, 4, kv_usage=0).reason == "scale-in cooldown"
    assert ask(policy, 120, 4, kv_usage=60).target == 6
    assert ask(policy, 180, 6, kv_usage=0).target == 5


def test_reasons_name_the_limit_that_held() -> None:
    up, down = alarm("up", 50, (0, None, 2)), alarm("down", 10, (None, 0, -1))
    policy = StepScalingPolicy(StepScaling(alarms=(up, down)), Bounds(2, 4))
    assert ask(policy, 0, 4, kv_usage=60).reason == "at the largest fleet"
    assert ask(policy, 60, 2, kv_usage=0).reason == "at the smallest fleet"
    assert ask(policy, 120, 2, kv_usage=30).reason == "no alarm"
    assert ask(policy, 180, 2, kv_usage=60).target == 4  # nothing held it back: no cooldown had begun
