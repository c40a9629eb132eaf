"""Arrival times follow the rate that was asked for."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.arrivals import DiurnalArrivals
from dynamo_sim.workload.arrivals.rates import LinearSegments, Segment, rate_profile
from dynamo_sim.workload.arrivals.times import arrival_times_ms
from tests.workload.generated_loads import arrivals_s, scenario

VARYING: dict[str, dict[str, Any]] = {
    "piecewise": {
        "steps": [
            {"from_s": 10, "rate_rps": 40},
            {"from_s": 40, "rate_rps": 0},
            {"from_s": 50, "rate_rps": 120},
        ]
    },
    "ramp": {"from_rps": 0, "to_rps": 100, "duration_s": 80},
    "diurnal": {"mean_rps": 50, "amplitude": 0.8, "period_s": 40},
    "flash_crowd": {
        "base_rps": 20,
        "peak_rps": 200,
        "at_s": 30,
        "ramp_s": 4,
        "hold_s": 10,
        "decay_s": 20,
    },
}
EXPECTED = {"piecewise": 1200 + 6000, "ramp": 4000 + 2000, "diurnal": 5000, "flash_crowd": 2000 + 180 * 22}
"""Requests expected in 100 s, computed by hand."""


def shape(name: str, **more: Any) -> dict[str, Any]:
    return {"shape": name, **VARYING[name], **more}


def test_constant_rate_has_equal_gaps_from_zero_on() -> None:
    assert arrivals_s({"shape": "constant", "rate_rps": 4}, request_count=4) == [0.0, 0.25, 0.5, 0.75]


def test_duration_ends_before_its_end() -> None:
    times = arrivals_s({"shape": "constant", "rate_rps": 1.1}, duration_s=10)
    assert len(times) == 11 and times[-1] < 10.0
    assert arrivals_s({"shape": "constant", "rate_rps": 10}, duration_s=0.1) == [0.0]


def test_what_comes_first_bounds_the_load() -> None:
    assert len(arrivals_s({"shape": "constant", "rate_rps": 10}, request_count=7, duration_s=5)) == 7
    assert len(arrivals_s({"shape": "constant", "rate_rps": 10}, request_count=700, duration_s=5)) == 50


def test_poisson_gaps_have_mean_and_deviation_of_an_exponential() -> None:
    gaps = np.diff([0.0, *arrivals_s({"shape": "poisson", "rate_rps": 20}, request_count=40_000)])
    assert gaps.mean() == pytest.approx(0.05, rel=0.02)
    assert gaps.std() == pytest.approx(0.05, rel=0.03)
    assert (gaps > 0.05).mean() == pytest.approx(np.exp(-1), abs=0.01)
    assert np.corrcoef(gaps[:-1], gaps[1:])[0, 1] == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("burstiness", [0.1, 0.25, 1.0, 4.0])
def test_gaps_vary_by_one_over_the_root_of_the_burstiness(burstiness: float) -> None:
    load = {"shape": "gamma", "rate_rps": 20, "burstiness": burstiness}
    gaps = np.diff([0.0, *arrivals_s(load, request_count=60_000)])
    assert gaps.mean() == pytest.approx(0.05, rel=0.04)
    assert gaps.std() / gaps.mean() == pytest.approx(burstiness**-0.5, rel=0.05)


def test_poisson_is_gamma_of_burstiness_one() -> None:
    poisson = arrivals_s({"shape": "poisson", "rate_rps": 3}, request_count=500)
    assert poisson == arrivals_s({"shape": "gamma", "rate_rps": 3, "burstiness": 1}, request_count=500)
    steps = [{"from_s": 0, "rate_rps": 3}]
    assert poisson == arrivals_s({"shape": "piecewise", "steps": steps}, request_count=500)


@pytest.mark.parametrize("name", VARYING)
def test_evenly_spaced_arrivals_are_as_near_to_the_rate_as_whole_requests_can_be(name: str) -> None:
    times = np.array(arrivals_s(shape(name, random=False), duration_s=100))
    assert len(times) == EXPECTED[name]
    profile = rate_profile(scenario(shape(name), duration_s=1).workload.arrivals)
    counted = np.searchsorted(times, np.arange(0.0, 101.0))
    assert np.abs(counted - profile.expected_by(np.arange(0.0, 101.0))).max() <= 1.0


@pytest.mark.parametrize("name", VARYING)
def test_random_arrivals_are_poisson_in_every_stretch_of_time(name: str) -> None:
    edges = np.linspace(0.0, 100.0, 51)
    profile = rate_profile(scenario(shape(name), duration_s=1).workload.arrivals)
    expected = np.diff(profile.expected_by(edges))
    counts = np.array(
        [np.histogram(arrivals_s(shape(name), seed, duration_s=100), edges)[0] for seed in range(40)]
    )
    assert not counts[:, expected == 0].any()
    busy = expected > 0
    assert counts.sum() == pytest.approx(40 * EXPECTED[name], rel=0.01)
    z = (counts[:, busy] - expected[busy]) / np.sqrt(expected[busy])
    assert np.abs(z.mean(axis=0)).max() < 4.5 / np.sqrt(40)
    assert z.var() == pytest.approx(1.0, abs=0.15)


def test_bursts_are_possible_on_any_rate() -> None:
    load = shape("diurnal", burstiness=0.1)
    counts = [len(arrivals_s(load, seed, duration_s=80)) for seed in range(60)]
    assert np.mean(counts) == pytest.approx(4000, rel=0.03)
    assert np.var(counts) == pytest.approx(4000 / 0.1, rel=0.6)


def test_nothing_arrives_before_the_first_step_or_in_a_pause() -> None:
    times = np.array(arrivals_s(shape("piecewise"), duration_s=100))
    assert times.min() >= 10.0
    assert not ((times >= 40.0) & (times < 50.0)).any()


def test_a_last_rate_of_zero_ends_the_load() -> None:
    steps = [{"from_s": 0, "rate_rps": 10}, {"from_s": 60, "rate_rps": 0}]
    assert len(arrivals_s({"shape": "piecewise", "steps": steps, "random": False})) == 600
    down = {"shape": "ramp", "from_rps": 10, "to_rps": 0, "duration_s": 60, "random": False}
    assert len(arrivals_s(down)) == 300
    crowd = {**shape("flash_crowd", random=False), "base_rps": 0}
    assert len(arrivals_s(crowd)) == 200 * 22


def test_an_event_that_falls_on_a_pause_waits_for_its_end() -> None:
    steps = [{"from_s": 0, "rate_rps": 1}, {"from_s": 2, "rate_rps": 0}, {"from_s": 5, "rate_rps": 1}]
    times = arrivals_s({"shape": "piecewise", "steps": steps, "random": False}, request_count=4)
    assert times == [0.0, 1.0, 5.0, 6.0]


def test_flash_crowd_without_ramps_is_a_step() -> None:
    crowd = {
        "shape": "flash_crowd",
        "base_rps": 1,
        "peak_rps": 10,
        "at_s": 3,
        "ramp_s": 0,
        "hold_s": 1,
        "decay_s": 0,
    }
    profile = rate_profile(scenario(crowd, duration_s=1).workload.arrivals)
    assert profile.rate_rps(np.array([2.9, 3.0, 3.9, 4.0])).tolist() == [1, 10, 10, 1]
    assert profile.expected_by(np.array([3.0, 4.0, 5.0, np.inf])).tolist() == [3, 13, 14, np.inf]


@pytest.mark.parametrize("peak_at_s", [None, 0.0, 7.5, 1000.0])
def test_diurnal_rate_is_a_cosine(peak_at_s: float | None) -> None:
    spec = DiurnalArrivals(shape="diurnal", mean_rps=7, amplitude=0.9, period_s=100, peak_at_s=peak_at_s)
    profile = rate_profile(spec)
    time_s = np.linspace(0.0, 300.0, 7001)
    pace, peak = 2 * np.pi / 100, 50.0 if peak_at_s is None else peak_at_s
    true_rate = 7 * (1 + 0.9 * np.cos(pace * (time_s - peak)))
    integral = 7 * (time_s + 0.9 / pace * (np.sin(pace * (time_s - peak)) + np.sin(pace * peak)))
    assert np.abs(profile.rate_rps(time_s) - true_rate).max() <= 2.4e-6 * 6.3
    assert np.abs(profile.expected_by(time_s) - integral).max() < 1e-3


def test_diurnal_begins_at_night() -> None:
    times = np.array(arrivals_s({"shape": "diurnal", "mean_rps": 0.1, "amplitude": 1}, duration_s=86400))
    assert np.histogram(times, [0, 21600, 64800, 86400])[0] == pytest.approx([785, 7070, 785], rel=0.1)


@given(
    lengths=st.lists(st.floats(0.0, 50.0), min_size=1, max_size=6),
    rates=st.lists(st.tuples(st.floats(0.0, 90.0), st.floats(0.0, 90.0)), min_size=6, max_size=6),
    last=st.floats(0.1, 90.0),
)
@settings(max_examples=200, deadline=None)
def test_expected_requests_and_their_times_are_inverse(
    lengths: list[float], rates: list[tuple[float, float]], last: float
) -> None:
    starts = np.concatenate(([0.0], np.cumsum(lengths)))
    segments = [Segment(at, *rate) for at, rate in zip(starts[:-1].tolist(), rates, strict=False)]
    profile = LinearSegments([*segments, Segment(float(starts[-1]), last)])
    time_s = np.linspace(0.0, float(starts[-1]) + 5.0, 200)
    expected = profile.expected_by(time_s)
    again = profile.when_expected(expected)
    assert (np.diff(expected) >= -1e-9).all()
    assert profile.expected_by(again) == pytest.approx(expected, abs=1e-6)


def test_times_are_whole_microseconds_in_order() -> None:
    times = arrival_times_ms(scenario(shape("diurnal"), duration_s=1).workload.arrivals, 3, None, 100.0)
    assert (np.diff(times) >= 0).all()
    assert (np.rint(times * 1e3) / 1e3 == times).all()


def test_longer_loads_begin_like_shorter_ones() -> None:
    long = arrivals_s(shape("diurnal"), duration_s=90)
    short = arrivals_s(shape("diurnal"), duration_s=30)
    assert long[: len(short)] == short
    assert arrivals_s(shape("diurnal"), request_count=100) == long[:100]


def test_speed_up_divides_times_and_not_the_number_of_requests() -> None:
    plain = arrivals_s(shape("ramp"), duration_s=50)
    fast = arrivals_s(shape("ramp"), duration_s=50, arrival_speedup_ratio=4)
    assert fast == pytest.approx([time / 4 for time in plain])


def test_the_same_seed_gives_the_same_bytes_everywhere() -> None:
    load = scenario({"shape": "gamma", "rate_rps": 7, "burstiness": 0.3}, request_count=5000)
    times = arrival_times_ms(load.workload.arrivals, 11, 5000)
    assert blake2b(times.astype("<f8").tobytes(), digest_size=8).hexdigest() == "c40d87a4f24b0990"
    assert not np.array_equal(times, arrival_times_ms(load.workload.arrivals, 12, 5000))


@pytest.mark.parametrize(
    ("arrivals", "bounds", "message"),
    [
        ({"shape": "poisson", "rate_rps": 1e9}, {"duration_s": 1e9}, "about 1e.18 requests would arrive"),
        (
            {"shape": "poisson", "rate_rps": 1e-9},
            {"duration_s": 1.0},
            "no request arrives; 1e-09 are expected",
        ),
        ({"shape": "constant", "rate_rps": 1e-200}, {"request_count": 2}, "no clock here can count"),
        ({"shape": "poisson", "rate_rps": 1e-320}, {"request_count": 2}, "no request arrives"),
    ],
)
def test_impossible_amounts_are_refused(arrivals: Any, bounds: Any, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        arrivals_s(arrivals, **bounds)
