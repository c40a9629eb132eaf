"""Fixed, schedule, target tracking, step scaling, queue proportional, predictive (`spec 10, 5`)."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from dynamo_sim.autoscaling import (
    Bounds,
    Decision,
    FixedPolicy,
    FleetView,
    PredictivePolicy,
    QueueProportionalPolicy,
    SchedulePolicy,
    StaticView,
    StepScalingPolicy,
    TargetTrackingPolicy,
)
from dynamo_sim.autoscaling.policies.forecast import forecast
from dynamo_sim.autoscaling.policies.predictive import BinnedHistory
from dynamo_sim.scenario.scaling_policies import (
    AlarmSpec,
    FixedScaling,
    PredictiveScaling,
    QueueProportionalScaling,
    ScheduleScaling,
    StepScaling,
    TargetTrackingScaling,
)


def schedule(**keys: Any) -> SchedulePolicy:
    return SchedulePolicy(ScheduleScaling.model_validate(keys))


def predictive(metric: str, per_worker: float, floor: int, **more: Any) -> PredictivePolicy:
    below = QueueProportionalScaling(per_worker=1)  # stands in for what the fixed policy does
    keys = {"metric": metric, "per_worker": per_worker, "bin_s": 10.0, "method": "linear", **more}
    return PredictivePolicy(
        PredictiveScaling(floor_policy=below, **keys), FixedPolicy(FixedScaling(count=floor))
    )


def ask(policy: Any, now_s: float, workers: int, **values: float | None) -> Decision:
    decision = policy.decide(now_s, StaticView(values), FleetView.of(workers))
    assert isinstance(decision, Decision)
    return decision


def test_fixed_looks_once() -> None:
    assert ask(FixedPolicy(FixedScaling(count=4)), 0.0, 1) == Decision(4, "fixed", next_at_s=math.inf)


def test_a_schedule_acts_exactly_at_its_times() -> None:
    policy = schedule(at_ms=[{"t": 2500.0, "target": 4}, {"t": 0.0, "target": 1}, {"t": 9000.0, "target": 2}])
    assert policy.first_at_s == 0.0
    found = [(at, d.target, d.next_at_s) for at in (0.0, 2.5, 9.0) for d in [ask(policy, at, 1)]]
    assert found == [(0.0, 1, 2.5), (2.5, 4, 9.0), (9.0, 2, math.inf)]


class TestCron:
    cronsim = pytest.importorskip("cronsim")

    def window(self, start: str, end: str, zone: str = "UTC", at: str = "2025-03-30T00:00:00") -> Any:
        from dynamo_sim.cron import CronWindow, parse_start

        return CronWindow(start, end, zone, parse_start(at))

    def test_a_window_is_open_from_its_start_until_its_end(self) -> None:
        window = self.window("0 8 * * *", "0 18 * * *")
        hour = 3600.0
        assert [window.is_open(h * hour) for h in (7.999, 8, 17.999, 18)] == [False, True, True, False]
        assert [window.next_edge_s(h * hour) for h in (0, 8, 18)] == [8 * hour, 18 * hour, 32 * hour]

    def test_a_window_over_midnight(self) -> None:
        window = self.window("0 22 * * *", "0 6 * * *")
        assert window.is_open(0.0) and not window.is_open(6 * 3600.0) and window.is_open(22 * 3600.0)

    def test_the_clock_of_a_time_zone_jumps(self) -> None:
        # Europe/Berlin goes from 2:00 to 3:00 on 2025-03-30, which is 1:00 UTC.
        window = self.window("30 3 * * *", "30 4 * * *", "Europe/Berlin")
        assert window.next_edge_s(0.0) == 1.5 * 3600

    def test_overlapping_windows_take_the_largest_and_nothing_takes_the_default(self) -> None:
        day = {"start": "0 8 * * *", "end": "0 20 * * *", "target": 3}
        noon = {"start": "0 11 * * *", "end": "0 14 * * *", "target": 6}
        policy = schedule(cron=[day, noon], default=1, start_of_run="2025-03-30T00:00:00")
        targets = [ask(policy, h * 3600.0, 1).target for h in (0, 8, 11, 14, 20)]
        assert targets == [1, 3, 6, 3, 1]
        assert ask(policy, 0.0, 1).next_at_s == 8 * 3600.0

    @pytest.mark.parametrize(
        ("start", "zone"), [("0 8 * *", "UTC"), ("61 8 * * *", "UTC"), ("0 8 * * *", "Mars/Base")]
    )
    def test_what_is_no_window_is_refused(self, start: str, zone: str) -> None:
        with pytest.raises(ValueError, match=r"cron|time zone"):
            self.window(start, "0 18 * * *", zone)

    def test_a_start_without_an_offset_is_utc(self) -> None:
        from dynamo_sim.cron import parse_start

        assert parse_start("2025-03-30T01:02") == datetime(2025, 3, 30, 1, 2, tzinfo=UTC)


def test_tracking_waits_for_cooldowns_but_scale_out_never_waits_for_scale_in() -> None:
    spec = TargetTrackingScaling(
        metric="kv_usage", target=0.5, scale_out_cooldown_s=60, scale_in_cooldown_s=300
    )
    policy = TargetTrackingPolicy(spec, Bounds(1, 20))
    assert ask(policy, 0, 4, kv_usage=1.0).target == 8
    assert ask(policy, 30, 8, kv_usage=1.0) == ask(policy, 30, 8, kv_usage=1.0)
    assert ask(policy, 30, 8, kv_usage=1.0).reason == "scale-out cooldown"
    assert ask(policy, 60, 8, kv_usage=1.0).target == 16
    assert ask(policy, 200, 16, kv_usage=0.1).reason == "scale-in cooldown"  # counts from the scale-out at 60
    assert ask(policy, 360, 16, kv_usage=0.1).target == 4
    assert ask(policy, 361, 4, kv_usage=1.0).target == 8
    assert ask(policy, 700, 8, kv_usage=None) == Decision(
        None, "no data", values={"avg kv_usage": None, "target": 0.5}
    )


def test_tracking_a_total_compares_it_with_what_the_fleet_should_carry() -> None:
    spec = TargetTrackingScaling(metric="in_flight", target=10, target_kind="total", scale_in_cooldown_s=0)
    policy = TargetTrackingPolicy(spec)
    assert ask(policy, 0, 4, in_flight=41).target == 5
    assert ask(policy, 1, 4, in_flight=37).target == 4  # inside the margin
    assert ask(policy, 2, 4, in_flight=12).target == 2


def alarm(direction: str, threshold: float, *steps: tuple[Any, Any, float], **more: Any) -> AlarmSpec:
    found = [{"lower": lower, "upper": upper, "adjustment": float(change)} for lower, upper, change in steps]
    given = {"metric": "kv_usage", "threshold": threshold, "direction": direction, "steps": found, **more}
    return AlarmSpec.model_validate(given)


def test_warming_workers_count_as_added_and_forbid_scale_in() -> None:
    up = alarm("up", 50, (0, 20, 1), (20, None, 4))
    down = alarm("down", 10, (None, 0, -1))
    policy = StepScalingPolicy(StepScaling(alarms=(up, down), warmup_s=100))
    assert ask(policy, 0, 3, kv_usage=60).target == 4
    assert ask(policy, 30, 4, kv_usage=60).target == 4  # the same step again adds nothing
    assert ask(policy, 60, 4, kv_usage=80).target == 7  # only the difference to the higher step
    assert ask(policy, 90, 7, kv_usage=0).reason == "warming up"
    assert ask(policy, 160, 7, kv_usage=0).target == 6


def test_an_alarm_needs_enough_of_its_last_means() -> None:
    policy = StepScalingPolicy(
        StepScaling(alarms=(alarm("up", 50, (0, None, 1), evaluation_periods=3, datapoints=2),))
    )
    targets = [ask(policy, t, 2, kv_usage=v).target for t, v in enumerate([60, 10, None, 60, 60, 60])]
    assert targets == [2, 2, 2, 2, 3, 3]
    with pytest.raises(ValueError, match="datapoints"):
        alarm("up", 50, (0, None, 1), evaluation_periods=2, datapoints=3)


def test_the_queue_scales_up_at_once_and_down_after_the_smaller_wish_has_held() -> None:
    policy = QueueProportionalPolicy(
        QueueProportionalScaling(per_worker=10, slack=1, hold_s=60), Bounds(1, 9)
    )
    assert ask(policy, 0, 1, router_queue=25, waiting=14).target == 5  # ceil(39 / 10) + 1
    assert ask(policy, 15, 5, router_queue=0, waiting=22).reason == "holding"
    assert ask(policy, 30, 5, router_queue=0, waiting=8).reason == "holding"
    assert ask(policy, 75, 5, router_queue=0, waiting=0).target == 4  # the largest wish of the last 60 s
    assert ask(policy, 91, 4, router_queue=0, waiting=0).target == 1
    assert ask(policy, 120, 1).target is None


def test_running_requests_count_by_their_weight() -> None:
    policy = QueueProportionalPolicy(QueueProportionalScaling(per_worker=10, include_in_flight=True))
    assert ask(policy, 0, 1, router_queue=5, waiting=10, running=20).target == 4
    half = QueueProportionalPolicy(QueueProportionalScaling(per_worker=10, include_in_flight=0.5))
    assert ask(half, 0, 1, router_queue=5, waiting=10, running=20).target == 3


def test_a_bin_without_a_look_repeats_the_one_before() -> None:
    history = BinnedHistory(10.0)
    for at, value in ((0, 1.0), (5, 3.0), (12, 8.0), (41, 0.0)):
        history.add(at, value)
    assert history.complete == [2.0, 8.0, 8.0, 8.0]
    assert history.end_s == 40.0


def test_forecasts() -> None:
    assert forecast("linear", [1, 2, 3], 2) == [3, 3]  # too few bins: the last value
    assert forecast("linear", [1, 2, 3, 4, 5], 2) == pytest.approx([6, 7])
    assert forecast("linear", [5, 4, 3, 2, 1], 2) == pytest.approx([0, 0], abs=1e-9)
    assert forecast("seasonal_naive", [1, 9, 1, 2, 8, 2], 4, season_bins=3) == [2, 8, 2, 2]
    assert forecast("seasonal_naive", [1, 9, 1, 2, 8], 1, season_bins=6) == [8]


def test_a_predictive_policy_is_ahead_of_its_reactive_one_but_never_below_it() -> None:
    policy = predictive("requests_started", 2.0, 3, window_s=10.0, horizon_s=30)
    targets = [ask(policy, 10.0 * k, 3, requests_started=float(k)).target for k in range(12)]
    assert targets[:5] == [3, 3, 3, 3, 3]
    assert targets[11] == 7  # bins 0..10 are known: 13 requests/s in the last of three bins ahead
    falling = predictive("requests_started", 2.0, 3, window_s=10.0, horizon_s=30)
    assert all(ask(falling, 10.0 * k, 3, requests_started=1.0).target == 3 for k in range(12))


def test_the_horizon_is_the_startup_time_in_whole_bins() -> None:
    policy = predictive("kv_usage", 1.0, 0)
    for k in range(11):
        fleet = FleetView.of(1, startup_s=25.0)
        decision = policy.decide(10.0 * k, StaticView({"kv_usage": float(k)}), fleet)
    assert decision.values["forecast"] == pytest.approx(12.0)


def test_holt_winters_needs_its_package() -> None:
    try:
        import statsmodels  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match=r"dynamo-sim\[predictive\]"):
            predictive("kv_usage", 1.0, 1, method="holt_winters")
    else:
        season = [10.0, 20.0, 30.0, 20.0] * 5
        assert forecast("holt_winters", season, 4, season_bins=4) == pytest.approx([10, 20, 30, 20], rel=0.1)
        assert len(forecast("holt_winters", season[:7], 3, season_bins=4)) == 3
