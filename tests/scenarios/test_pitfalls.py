"""The pitfalls of autoscalers show in the records of their scenarios, and not in those of their cures.

Rules: `spec 10, 11`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import dynamo_sim as ds
from dynamo_sim.autoscaling.build import build_autoscaler

SCENARIOS = Path(__file__).parents[2] / "scenarios"
FOLDER = SCENARIOS / "pitfalls"


def scenario(name: str) -> ds.Scenario:
    return ds.load_scenario(FOLDER / f"{name}.yaml")


@cache
def result(name: str) -> ds.RunResult:
    return ds.run(scenario(name))


def evaluations(name: str, loop: str | None = None) -> pd.DataFrame:
    """All evaluations of a run, or those of one loop."""
    found = result(name).decisions
    return found if loop is None else found[found["loop"] == loop].reset_index(drop=True)


def changes(name: str, loop: str | None = None) -> pd.DataFrame:
    """The evaluations that changed the fleet."""
    found = evaluations(name, loop)
    return found[found["target"] != found["current"]]


def cancelled_starts(name: str) -> set[int]:
    """Workers that were taken away while they started."""
    return {worker for row in evaluations(name)["cancelled"] for worker in row}


def between(rows: pd.DataFrame, from_s: float, to_s: float) -> pd.DataFrame:
    return rows[(rows["at_s"] >= from_s) & (rows["at_s"] <= to_s)]


def worker_seconds(name: str) -> float:
    return float(result(name).summary["decode_worker_seconds"])


def within_sla(name: str) -> float:
    """Share of all requests, in percent."""
    summary = result(name).summary
    return 100.0 * summary["goodput_completed_requests"] / summary["num_requests"]


def gpu_hours(name: str) -> float:
    return float(result(name).summary["gpu_hours"])


# ---------------------------------------------------------------- the collection


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("**/*.yaml")), ids=lambda path: path.stem)
def test_every_scenario_is_in_the_index_and_says_in_three_lines_what_it_shows(path: Path) -> None:
    assert f"]({path.relative_to(SCENARIOS)})" in (SCENARIOS / "README.md").read_text()
    lines = path.read_text().splitlines()
    schema = "../" * (len(path.relative_to(SCENARIOS).parts) - 1) + "schema.json"
    assert lines[0] == f"# yaml-language-server: $schema={schema}"
    comment = 0
    while lines[1 + comment].startswith("#"):
        comment += 1
    assert 1 <= comment <= 3


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_pitfall_is_named_as_its_file(path: Path) -> None:
    assert scenario(path.stem).name == path.stem


PITFALLS = sorted(path.stem for path in FOLDER.glob("*.yaml") if not path.stem.endswith("-cured"))
ROW = r"\[{0}\]\(pitfalls/{0}\.yaml\) \| \[.*\]\(pitfalls/{0}-cured\.yaml\) \| (\S+) → (\S+) % \| (\S+) → (\S+) \|"
"""A row of the index: what a cure does to requests within the SLA, in percent, and to GPU hours."""


@pytest.mark.parametrize("name", PITFALLS)
def test_a_cure_serves_better_or_costs_less(name: str) -> None:
    cure = f"{name}-cured"
    assert scenario(cure).sla == scenario(name).sla and scenario(name).sla.is_given
    assert scenario(cure).workload == scenario(name).workload
    assert within_sla(cure) > within_sla(name) + 1 or gpu_hours(cure) < 0.9 * gpu_hours(name)


@pytest.mark.parametrize("name", PITFALLS)
def test_the_index_says_what_a_cure_does_and_the_file_says_what_it_costs(name: str) -> None:
    cure = f"{name}-cured"
    row = re.search(ROW.format(name), (SCENARIOS / "README.md").read_text(encoding="utf-8"))
    assert row is not None
    shown = [float(figure) for figure in row.groups()]
    assert shown[:2] == pytest.approx([within_sla(name), within_sla(cure)], abs=1.0)
    assert shown[2:] == pytest.approx([gpu_hours(name), gpu_hours(cure)], abs=0.02)
    comment = "".join(
        re.findall(r"^# .*\n", (FOLDER / f"{cure}.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert re.search(r"\bcosts?\b|GPU time", comment)


# ---------------------------------------------------------------- HorizontalPodAutoscaler


@pytest.mark.parametrize("path", sorted(FOLDER.glob("keda-*-cured.yaml")), ids=lambda path: path.stem)
def test_a_cure_has_no_setting_without_effect(path: Path) -> None:
    cure = scenario(path.stem)
    assert cure.autoscaler is not None and build_autoscaler(cure.autoscaler, cure).warnings == []


def test_a_value_target_cancels_starting_workers_while_the_metric_is_above_it() -> None:
    name, metric = "hpa-value-ready-collapse", "value:requests_per_second"
    shrinking = changes(name)
    shrinking = shrinking[shrinking["target"] < shrinking["current"]]
    assert len(shrinking) >= 3
    under_load = shrinking[shrinking["at_s"] < 420]
    assert (under_load[metric] > 1.5 * 28).all()
    before_the_first_is_ready = shrinking[shrinking["at_s"] < 195]
    assert (before_the_first_is_ready["desired"] <= 5).all()
    assert cancelled_starts(name) >= {4, 5}


def test_a_window_longer_than_a_start_keeps_them() -> None:
    name = "hpa-value-ready-collapse-cured"
    assert cancelled_starts(name) == set()
    wished_fewer = evaluations(name)
    assert (wished_fewer["desired"] < wished_fewer["current"]).any()


def test_a_value_target_orders_no_second_worker_while_none_is_ready() -> None:
    waiting = between(evaluations("hpa-value-none-ready", "keda-hpa"), 91, 209)
    assert (waiting["value:trigger 0"] > 5 * 50).all()
    assert (waiting["desired"] == 0).all()
    assert (waiting["target"] == 1).all()


def test_an_averagevalue_target_orders_them_at_once() -> None:
    ordered = changes("hpa-value-none-ready-cured", "keda-hpa")
    assert ordered["at_s"].iloc[0] == 90
    assert between(evaluations("hpa-value-none-ready-cured", "keda-hpa"), 105, 209)["target"].eq(8).all()


def test_an_averagevalue_is_at_its_target_while_each_ready_worker_has_three_times_as_much() -> None:
    starting = between(evaluations("hpa-averagevalue-surge"), 105, 240)
    total = starting["value:requests_per_second"]
    assert (total / starting["current"]).between(3.2, 3.8).all()
    assert (total / 2 > 3 * 3.5).all()  # two are ready
    assert (starting["target"] == starting["current"]).all()


def test_workers_that_are_there_serve_the_surge_that_starting_ones_cannot() -> None:
    asked = evaluations("hpa-averagevalue-surge-cured")
    assert (between(asked, 15, 60)["current"] <= 5).all()  # the minimum, from the first sync on
    served = [
        result(name).summary["median_ttft_ms"]
        for name in ("hpa-averagevalue-surge", "hpa-averagevalue-surge-cured")
    ]
    assert served[1] < 100 < 10_000 < served[0]


def test_a_burst_every_four_minutes_keeps_the_fleet_large_for_ever() -> None:
    after = between(evaluations("hpa-no-scale-in"), 90, 960)
    assert (after["current"] == 4).all() and (after["target"] == 4).all()
    assert (after["desired"] <= 1).mean() > 0.75


def test_a_window_shorter_than_the_pause_lets_it_go_but_each_burst_starts_workers_anew() -> None:
    sizes = evaluations("hpa-no-scale-in-cured")["current"]
    assert ((sizes.shift() == 4) & (sizes == 1)).sum() >= 3
    assert worker_seconds("hpa-no-scale-in-cured") < 0.7 * worker_seconds("hpa-no-scale-in")
    p99 = [result(name).summary["p99_ttft_ms"] for name in ("hpa-no-scale-in", "hpa-no-scale-in-cured")]
    assert p99[1] > p99[0]


def test_a_steady_load_flaps_when_the_larger_size_looks_too_large() -> None:
    sizes = changes("hpa-target-band")["target"].tolist()
    assert len(sizes) > 30
    assert sizes == [2, 1] * (len(sizes) // 2)
    rows = evaluations("hpa-target-band")
    alone = rows[rows["current"] == 1]["value:requests_in_flight"]
    together = rows[rows["desired"] == 1]["value:requests_in_flight"]
    assert (alone > 30).all() and (together < 15).all()


def test_it_stays_at_two_workers_when_they_do_not() -> None:
    assert changes("hpa-target-band-cured")["target"].tolist() == [2]


def test_a_latency_without_traffic_keeps_the_fleet_large() -> None:
    night = between(evaluations("hpa-empty-latency"), 195, 1800)
    assert night["value:ttft_p95"].isna().all()
    assert (night["desired"] == 0).all()  # of the other metric
    assert (night["target"] == 4).all()


def test_a_number_that_is_0_without_traffic_lets_it_go() -> None:
    night = between(evaluations("hpa-empty-latency-cured"), 450, 1800)
    assert (night["current"] == 1).all()


def test_a_queue_metric_orders_the_maximum_before_the_first_worker_is_ready() -> None:
    ordered = changes("hpa-startup-overshoot")
    first_ready_s = ordered["at_s"].iloc[0] + 180
    assert ordered["target"].tolist() == [4, 8, 16]
    assert ordered["at_s"].max() < first_ready_s
    four = scenario("hpa-startup-overshoot").with_(**{"autoscaler": None, "fleet.workers": 4})
    assert ds.run(four).summary["p99_ttft_ms"] < 1000


def test_arrivals_order_about_what_is_needed() -> None:
    name = "hpa-startup-overshoot-cured"
    assert evaluations(name)["target"].max() == 10  # three arrivals a second for each
    assert worker_seconds(name) < 0.7 * worker_seconds("hpa-startup-overshoot")


# ---------------------------------------------------------------- KEDA


def test_the_operator_goes_to_zero_past_the_behavior() -> None:
    name = "keda-cliff-to-zero"
    by_hpa = changes(name, "keda-hpa")
    down = by_hpa[by_hpa["target"] < by_hpa["current"]]
    assert (down["current"] - down["target"] == 1).all()
    by_operator = changes(name, "keda-operator")
    assert by_operator[["current", "target"]].to_numpy().tolist() == [[4, 0], [0, 1]]
    assert by_operator["reason"].iloc[0] == "cooled down"
    assert result(name).requests["ttft_ms"].max() > 60_000  # a whole start


def test_with_a_minimum_of_one_it_goes_down_step_by_step() -> None:
    rows = changes("keda-cliff-to-zero-cured")
    down = rows[rows["target"] < rows["current"]]
    assert (down["current"] - down["target"] == 1).all()
    assert (down["at_s"].diff().dropna() >= 300).all()
    assert result("keda-cliff-to-zero-cured").requests["ttft_ms"].max() < 1000


def test_the_cooldown_keeps_nobody_from_four_to_one() -> None:
    rows = changes("keda-cooldown-not-for-n")
    assert rows[["loop", "current", "target"]].to_numpy().tolist() == [["keda-hpa", 4, 1], ["keda-hpa", 1, 4]]
    assert rows["at_s"].iloc[0] < 120 + 90  # the peak ends at 120, the cooldown is 3600


def test_the_window_of_the_hpa_does() -> None:
    assert changes("keda-cooldown-not-for-n-cured").empty  # the peaks are 210 s apart, the window is 300 s


def test_a_new_fleet_is_sent_to_zero_at_the_first_poll() -> None:
    first = changes("keda-zero-at-birth").iloc[0]
    assert (first["loop"], first["at_s"], first["current"], first["target"]) == ("keda-operator", 30, 2, 0)
    assert result("keda-zero-at-birth").requests["ttft_ms"].iloc[0] > 60_000


def test_an_initial_cooldown_keeps_it_until_the_traffic_comes() -> None:
    assert changes("keda-zero-at-birth-cured").empty
    assert result("keda-zero-at-birth-cured").requests["ttft_ms"].max() < 100


# ---------------------------------------------------------------- Knative


def test_panic_orders_the_maximum_while_the_first_workers_start() -> None:
    ordered = changes("kpa-panic-slow-start")
    starting = between(ordered, 60, 64 + 120)
    assert starting["target"].is_monotonic_increasing
    assert starting["target"].max() == 20
    assert set(starting["reason"]) == {"panic", "max scale"}
    three = scenario("kpa-panic-slow-start").with_(**{"autoscaler": None, "fleet.workers": 3})
    assert ds.run(three).summary["p99_ttft_ms"] < 1000


def test_by_requests_a_second_it_orders_what_the_arrivals_need() -> None:
    assert evaluations("kpa-panic-slow-start-cured")["target"].max() == 10  # 20 a second, 2.1 for each


def test_the_end_of_a_panic_cancels_what_it_ordered() -> None:
    name = "kpa-exit-panic-drop"
    first = between(evaluations(name), 0, 180)
    ordered = {worker for row in first["added"] for worker in row}
    assert len(ordered) == 14
    assert {worker for row in first["cancelled"] for worker in row} == ordered  # none of them ever served
    last = between(changes(name), 0, 180).iloc[-1]
    assert (last["reason"], last["current"], last["target"]) == ("stable", 15, 1)


def test_a_delay_longer_than_a_start_keeps_it() -> None:
    name = "kpa-exit-panic-drop-cured"
    assert cancelled_starts(name) == set()
    sizes = result(name).fleet
    assert evaluations(name)["current"].max() == 15 and not sizes.empty


def test_a_metric_of_running_requests_only_doubles() -> None:
    ordered = changes("kpa-queue-hidden").head(3)
    assert ordered["target"].tolist() == [2, 4, 8]
    assert (ordered["value:sum running"] == 8 * ordered["current"]).all()  # as many as the workers run


def test_a_metric_that_counts_the_queue_orders_at_once() -> None:
    assert changes("kpa-queue-hidden-cured")["target"].tolist()[0] == 16


# ---------------------------------------------------------------- any of them


def test_requests_in_flight_do_not_tell_long_prompts_from_short_ones() -> None:
    long = result("requests-are-not-tokens")
    short = ds.run(scenario("requests-are-not-tokens").with_(**{"workload.input_tokens": 400}))
    assert short.decisions["target"].iloc[-1] == long.decisions["target"].iloc[-1] == 4
    assert long.summary["median_e2e_latency_ms"] > 4 * short.summary["median_e2e_latency_ms"]


def test_a_latency_does() -> None:
    short = ds.run(scenario("requests-are-not-tokens-cured").with_(**{"workload.input_tokens": 400}))
    assert short.decisions["target"].max() == 2
    assert result("requests-are-not-tokens-cured").decisions["target"].max() > 8


# ---------------------------------------------------------------- by the rules of the Dynamo planner


def test_a_scale_in_that_does_not_ask_about_the_survivor_flaps() -> None:
    sizes = changes("planner-2-1-flap")["target"].tolist()
    assert len(sizes) >= 10
    assert sizes == ([2, 1] * len(sizes))[: len(sizes)]


def test_a_threshold_well_below_half_of_the_other_one_does_not() -> None:
    traffic = between(changes("planner-2-1-flap-cured"), 0, 600)
    assert traffic["target"].tolist() == [2]


def test_half_is_not_enough_because_a_worker_alone_is_slower() -> None:
    slower = ds.run(scenario("planner-2-1-flap-cured").with_(**{"workload.arrivals.rate_rps": 1.5})).decisions
    down = slower[slower["target"] < slower["current"]]
    assert len(down) >= 5
    assert (down["value:max kv_usage"] <= 0.4).all()


def test_a_worker_without_a_pass_stops_all_decisions() -> None:
    idle = between(evaluations("planner-blind-idle"), 190, 900)
    assert set(idle["reason"]) == {"worker_count_mismatch"}
    assert (idle["current"] == 2).all()


def test_a_silent_worker_that_counts_as_idle_does_not() -> None:
    assert (between(evaluations("planner-blind-idle-cured"), 190, 900)["current"] == 1).all()


def test_a_worker_that_does_not_start_stops_all_decisions() -> None:
    rows = changes("planner-stuck-start")
    assert rows["target"].tolist() == [2]
    after = evaluations("planner-stuck-start")
    after = after[after["at_s"] > rows["at_s"].iloc[0]]
    assert set(after["reason"]) == {"scaling_in_progress"}
    assert result("planner-stuck-start").requests["ttft_ms"].max() > 20_000


def test_a_starting_worker_that_counts_as_capacity_does_not() -> None:
    assert evaluations("planner-stuck-start-cured")["target"].max() > 2
    assert evaluations("planner-stuck-start-cured")["current"].iloc[-1] == 1


# ---------------------------------------------------------------- starts and ends of workers


def test_a_drain_deadline_cuts_answers_off_that_a_longer_one_lets_end() -> None:
    cut = result("drain-cut").requests
    failed = cut[cut["outcome"] == "failed"]
    assert len(failed) > 3
    assert (failed["ended_ms"] == 62_000.0).all()
    assert (failed["emitted_tokens"] > 0).all() and (failed["emitted_tokens"] < 800).all()
    assert "requests failed when their worker was killed" in result("drain-cut").warnings[0]
    assert set(result("drain-cut-cured").requests["outcome"]) == {"completed"}
    assert result("drain-cut-cured").fleet["at_ms"].iloc[-1] > 62_000.0


def test_somebody_draws_the_slow_start_and_the_scale_up_stays_incomplete() -> None:
    ready = result("cold-compile-tail").fleet.query("cause == 'ready'")
    assert len(ready) == 8 and (ready["at_ms"] == 100_000.0).all()  # two of ten are still compiling
    cured = result("cold-compile-tail-cured").fleet.query("cause == 'ready'")
    assert len(cured) == 10
