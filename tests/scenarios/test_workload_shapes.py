"""The scenarios about the shape of a load show what their comments say."""

from __future__ import annotations

from pathlib import Path

from dynamo_sim.scenario import load_scenario
from dynamo_sim.simulation import run

FOLDER = Path(__file__).parents[2] / "scenarios"


def test_bursts_cost_the_tail_of_the_time_to_first_token_at_the_same_mean_rate() -> None:
    bursty = load_scenario(FOLDER / "poisson_vs_burst.yaml")
    even = bursty.with_(**{"workload.arrivals.burstiness": 1})
    burst, poisson = run(bursty), run(even)
    for one, other in zip(burst.requests["output_tokens"], poisson.requests["output_tokens"], strict=True):
        assert one == other
    last_ms = [result.requests["arrival_ms"].max() for result in (burst, poisson)]
    assert abs(last_ms[0] / last_ms[1] - 1) < 0.1
    assert burst.summary["p99_ttft_ms"] > 10 * poisson.summary["p99_ttft_ms"]
    assert burst.summary["median_ttft_ms"] < 3 * poisson.summary["median_ttft_ms"]


def test_workers_that_come_after_a_flash_crowd_do_not_serve_it() -> None:
    requests = run(load_scenario(FOLDER / "flash_crowd.yaml")).requests
    crowd = requests[(requests["arrival_ms"] >= 120_000) & (requests["arrival_ms"] < 205_000)]
    after = requests[(requests["arrival_ms"] >= 212_000) & (requests["arrival_ms"] < 290_000)]
    assert set(crowd["worker_id"]) == {0, 1}
    assert crowd["ttft_ms"].median() > 30_000
    waited = after["ttft_ms"] > 1000
    assert set(after[waited]["worker_id"]) == {0, 1}
    assert set(after[~waited]["worker_id"]) >= {2, 3, 4, 5, 6, 7}


def test_a_schedule_that_follows_the_day_serves_as_well_as_the_peak_size_for_less() -> None:
    scenario = load_scenario(FOLDER / "diurnal.yaml")
    fixed = scenario.with_(**{"scaling": [], "fleet.workers": 3, "fleet.engine.startup_time": None})
    followed, peak = run(scenario).summary, run(fixed).summary
    assert followed["goodput_completed_requests"] >= 0.995 * peak["goodput_completed_requests"]
    assert followed["decode_worker_seconds"] < 0.8 * peak["decode_worker_seconds"]
