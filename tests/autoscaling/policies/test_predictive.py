"""Forecasts, and the policy that scales for them (`spec 10, 5`)."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.autoscaling import FixedPolicy, FleetView, PredictivePolicy, StaticView, TargetTrackingPolicy
from dynamo_sim.autoscaling.policies.forecast import forecast
from dynamo_sim.autoscaling.policies.predictive import BinnedHistory
from dynamo_sim.scenario.autoscaler.fixed import FixedScaling
from dynamo_sim.scenario.autoscaler.predictive import PredictiveScaling
from dynamo_sim.scenario.autoscaler.queue_proportional import QueueProportionalScaling
from dynamo_sim.scenario.autoscaler.target_tracking import TargetTrackingScaling
from tests.autoscaling.policies.policy_driver import ask


def predictive(metric: str, per_worker: float, floor: int, **more: Any) -> PredictivePolicy:
    below = QueueProportionalScaling(per_worker=1)  # stands in for what the fixed policy does
    keys = {"metric": metric, "per_worker": per_worker, "bin_s": 10.0, "method": "linear", **more}
    return PredictivePolicy(
        PredictiveScaling(floor_policy=below, **keys), FixedPolicy(FixedScaling(count=floor))
    )


def test_a_bin_without_an_evaluation_repeats_the_one_before() -> None:
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
        with pytest.raises(ImportError, match=r"pip install 'statsmodels>=0\.14'"):
            predictive("kv_usage", 1.0, 1, method="holt_winters")
    else:
        season = [10.0, 20.0, 30.0, 20.0] * 5
        assert forecast("holt_winters", season, 4, season_bins=4) == pytest.approx([10, 20, 30, 20], rel=0.1)
        assert len(forecast("holt_winters", season[:7], 3, season_bins=4)) == 3


def test_it_is_evaluated_as_often_as_its_reactive_policy() -> None:
    tracking = TargetTrackingPolicy(TargetTrackingScaling(metric="in_flight", target=4))
    spec = PredictiveScaling(
        metric="requests_started", per_worker=1, bin_s=10, method="linear", floor_policy=tracking.spec
    )
    assert PredictivePolicy(spec, tracking).period_s == tracking.period_s == 60
