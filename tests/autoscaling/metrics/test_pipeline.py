"""What can be seen: scrape times, delay, windows, staleness, histograms, and the exact view (`spec 10, 8.1 to 8.3`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from dynamo_sim.autoscaling import (
    MetricQuery,
    MetricsPipeline,
    MetricsSection,
    Observations,
    Sample,
    scrape_offsets,
)
from dynamo_sim.autoscaling.metrics.histogram import bucket_percentile, exact_percentile
from dynamo_sim.autoscaling.metrics.series import SampleSeries
from dynamo_sim.errors import SimulationError
from dynamo_sim.metric_catalogue import METRICS


class Truth:
    """Workers whose values are functions of time: gauges ``10 * worker + t``, counters ``2 t``."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, float]] = []
        self.silent: set[int] = set()
        self.latencies: dict[int, list[tuple[float, float]]] = {}
        self.without: set[str] = set()

    def sample(self, worker_id: int, now_s: float, names: Sequence[str]) -> Mapping[str, float] | None:
        self.asked.append((worker_id, now_s))
        if worker_id in self.silent:
            return None
        return {n: self._value(n, worker_id, now_s) for n in names if n not in self.without}

    def _value(self, name: str, worker_id: int, now_s: float) -> float:
        return 2.0 * now_s if METRICS[name].kind.value == "counter" else 10.0 * worker_id + now_s

    def sample_fleet(self, now_s: float, names: Sequence[str]) -> Mapping[str, float]:
        return dict.fromkeys(names, now_s)

    def observations(self, worker_id: int, metric: str, since_s: float, until_s: float) -> Observations:
        seen = [(at, v) for at, v in self.latencies.get(worker_id, []) if since_s < at <= until_s]
        return Observations(np.array([at for at, _ in seen]), np.array([v for _, v in seen]))

    def bridge(self, now_s: float) -> Mapping[str, Any]:
        return {"now_ms": now_s * 1000}


def pipeline(
    *queries: MetricQuery, truth: Truth | None = None, workers: int = 2, **settings: Any
) -> MetricsPipeline:
    made = MetricsPipeline(truth or Truth(), queries, MetricsSection(**{"scrape_aligned": True, **settings}))
    for worker in range(workers):
        made.worker_ready(worker, 0.0)
    return made


WAITING = MetricQuery("waiting")


def test_a_controller_sees_the_last_scrape_not_the_truth() -> None:
    metrics = pipeline(WAITING, scrape_interval_s=10)
    assert metrics.view(14.0).per_worker(WAITING) == {0: Sample(10.0, 10.0), 1: Sample(20.0, 10.0)}
    assert metrics.next_scrape_s == 20.0


def test_a_scrape_of_this_very_moment_is_seen_and_a_delayed_one_is_not() -> None:
    now = pipeline(WAITING, scrape_interval_s=10)
    assert now.view(20.0).value(WAITING) == 25.0
    late = pipeline(WAITING, scrape_interval_s=10, scrape_delay_s=3)
    assert late.view(20.0).value(WAITING) == 15.0
    assert late.view(23.0).value(WAITING) == 25.0


def test_every_target_has_an_offset_of_its_own_that_only_the_seed_decides() -> None:
    truth = Truth()
    offset = scrape_offsets(7, "fleet")
    metrics = MetricsPipeline(truth, [WAITING], MetricsSection(scrape_interval_s=10), offset)
    for worker in range(3):
        metrics.worker_ready(worker, 12.0)
    metrics.scrape_due(40.0)
    for worker in range(3):
        times = [at for who, at in truth.asked if who == worker]
        assert times[0] >= 12.0
        assert times == [offset(worker) * 10 + 10 * k for k in range(*_span(offset(worker) * 10))]
    assert len({offset(worker) for worker in range(3)}) == 3
    assert offset(1) == scrape_offsets(7, "fleet")(1) != scrape_offsets(8, "fleet")(1)


def _span(shift: float) -> tuple[int, int]:
    return math.ceil((12.0 - shift) / 10), math.floor((40.0 - shift) / 10) + 1


def test_scrape_times_are_multiples_not_sums() -> None:
    truth = Truth()
    metrics = pipeline(WAITING, truth=truth, workers=1, scrape_interval_s=0.1)
    metrics.scrape_due(100.0)
    assert [at for _, at in truth.asked] == [k * 0.1 for k in range(len(truth.asked))]


def test_loading_workers_are_scraped_only_when_asked_for() -> None:
    for loading, seen in ((False, {}), (True, {3: Sample(40.0, 10.0)})):
        metrics = pipeline(WAITING, workers=0, scrape_interval_s=10, scrape_while_loading=loading)
        metrics.worker_created(3, 5.0)
        assert metrics.view(12.0).per_worker(WAITING) == seen
        metrics.worker_ready(3, 15.0)
        assert metrics.view(20.0).per_worker(WAITING) == {3: Sample(50.0, 20.0)}


def test_a_removed_worker_haunts_instant_queries_until_the_lookback_or_its_marker() -> None:
    for markers, until in ((False, 40.0), (True, 19.0)):
        metrics = pipeline(WAITING, scrape_interval_s=10, lookback_s=30, staleness_markers=markers)
        metrics.view(12.0)
        metrics.worker_removed(1, 15.0)
        assert 1 in metrics.view(until).per_worker(WAITING)
        assert 1 not in metrics.view(until + 1).per_worker(WAITING)
        assert 0 in metrics.view(until + 1).per_worker(WAITING)


def test_by_default_a_removed_worker_is_gone_from_instant_queries_at_its_next_scrape() -> None:
    metrics = pipeline(WAITING, scrape_interval_s=15)
    metrics.view(16.0)
    metrics.worker_removed(1, 20.0)
    assert metrics.view(31.0).per_worker(WAITING).keys() == {0}


def test_a_worker_that_does_not_answer_goes_stale() -> None:
    for markers, there in ((False, True), (True, False)):
        truth = Truth()
        metrics = pipeline(WAITING, truth=truth, scrape_interval_s=10, staleness_markers=markers)
        metrics.view(10.0)
        truth.silent = {1}
        assert (1 in metrics.view(20.0).per_worker(WAITING)) is there
        truth.silent = set()
        assert metrics.view(30.0).per_worker(WAITING)[1] == Sample(40.0, 30.0)


def test_rates_need_two_samples_and_divide_by_their_distance() -> None:
    rate = MetricQuery("requests_started", "rate", "sum", 25)
    metrics = pipeline(rate, scrape_interval_s=10)
    assert metrics.view(9.0).value(rate) is None
    assert metrics.view(19.0).value(rate) == 4.0
    found = metrics.view(34.0).per_worker(rate)[0]
    assert (found.value, found.at_s, found.window_s) == (2.0, 30.0, 20.0)
    increase = MetricQuery("requests_started", "increase", window_s=25)
    assert metrics.view(34.0).per_worker(increase)[0].value == 40.0


def test_a_counter_that_starts_again_is_counted_on() -> None:
    query = MetricQuery("requests_started", "increase", "sum", 100)
    truth = Truth()
    values = iter([3.0, 7.0, 2.0, 4.0])
    truth._value = lambda *_: next(values)  # type: ignore[method-assign]
    metrics = pipeline(query, truth=truth, workers=1, scrape_interval_s=10)
    assert metrics.view(30.0).value(query) == 4.0 + 2.0 + 2.0


def test_windows_and_reductions() -> None:
    mean = MetricQuery("waiting", reduce="avg_over_time", window_s=20)
    metrics = pipeline(mean, scrape_interval_s=10)
    view = metrics.view(42.0)
    assert view.value(mean) == 35.0 + 5.0  # scrapes at 30 and 40, workers 10 apart
    for reduce, value in (("sum", 90.0), ("max", 50.0), ("min", 40.0), ("avg", 45.0)):
        assert view.value(MetricQuery("waiting", reduce=reduce)) == value
    assert view.value(MetricQuery("waiting", scale=100.0)) == 4500.0


def test_an_adapter_gives_its_answer_again_while_it_is_young() -> None:
    metrics = pipeline(WAITING, scrape_interval_s=10, query_interval_s=30)
    assert [metrics.view(t).value(WAITING) for t in (10.0, 30.0, 39.0, 40.0)] == [15.0, 15.0, 15.0, 45.0]


def test_latencies_of_the_window_and_no_data_without_any() -> None:
    truth = Truth()
    truth.latencies = {0: [(5.0, 100.0), (12.0, 200.0), (19.0, 700.0)], 1: [(18.0, 300.0)]}
    p50 = MetricQuery("ttft", "p50", window_s=12)
    metrics = pipeline(p50, MetricQuery("ttft", "mean", window_s=12), truth=truth, scrape_interval_s=10)
    assert metrics.view(20.0).value(p50) == 300.0
    assert metrics.view(20.0).value(MetricQuery("ttft", "mean", window_s=12)) == 400.0
    assert metrics.view(20.0).value(MetricQuery("ttft", "p50", "max", 12)) == 700.0
    assert metrics.view(20.0).value(MetricQuery("ttft", "rate", window_s=12)) == 0.25
    assert metrics.view(29.0).value(p50) == 700.0  # what was observed after 17 and scraped at 20
    assert metrics.view(35.0).value(p50) is None
    assert metrics.view(35.0).value(MetricQuery("ttft", "rate", window_s=12)) == 0.0


def test_percentiles_weigh_values_by_their_counts() -> None:
    values, counts = np.array([30.0, 10.0, 20.0]), np.array([1, 97, 2])
    assert exact_percentile(values, counts, 95) == 10.0
    assert exact_percentile(values, counts, 99) == 20.0
    assert exact_percentile(values, counts, 100) == 30.0
    assert exact_percentile(np.empty(0), np.empty(0, dtype=np.int64), 50) is None


def test_buckets_interpolate_like_histogram_quantile() -> None:
    values, counts = np.array([50.0, 100.0, 150.0, 900.0]), np.array([1, 1, 2, 1])
    assert bucket_percentile(values, counts, 50, (100, 200, 400)) == pytest.approx(125.0)
    assert bucket_percentile(values, counts, 20, (100, 200, 400)) == pytest.approx(50.0)
    assert bucket_percentile(values, counts, 99, (100, 200, 400)) == 400.0
    assert bucket_percentile(np.empty(0), np.empty(0, dtype=np.int64), 50, (1.0,)) is None
    metrics = MetricsPipeline(
        Truth(), [MetricQuery("ttft")], MetricsSection(buckets={"ttft": (100.0, 200.0)})
    )
    assert metrics.settings.buckets["ttft"] == (100.0, 200.0)


def test_perfect_metrics_are_those_of_the_moment() -> None:
    rate = MetricQuery("requests_started", "rate", "sum", 10)
    metrics = pipeline(WAITING, rate, perfect=True)
    assert metrics.next_scrape_s == math.inf
    assert metrics.view(3.7).value(WAITING) == pytest.approx(8.7)
    assert metrics.view(4.0).value(rate) == 4.0  # from the start of the worker
    metrics.view(20.0).value(rate)
    assert metrics.view(27.0).value(rate) == 4.0
    metrics.worker_removed(1, 27.5)
    after = metrics.view(28.0)
    assert after.per_worker(WAITING) == {0: Sample(28.0, 28.0)}
    assert after.per_worker(rate).keys() == {0, 1}  # what it did in the window still counts
    assert metrics.view(40.0).per_worker(rate).keys() == {0}


def test_busy_is_the_share_of_the_window_in_passes() -> None:
    busy = MetricQuery("busy", window_s=20)
    truth = Truth()
    truth._value = lambda name, worker, now: now * (0.25 if worker else 0.75)  # type: ignore[method-assign, assignment]
    metrics = pipeline(busy, truth=truth, scrape_interval_s=10)
    view = metrics.view(40.0)
    assert view.value(busy) == 0.5
    assert view.value(MetricQuery("busy", reduce="max", window_s=20)) == 0.75


def test_what_nobody_reads_is_not_collected() -> None:
    truth = Truth()
    metrics = MetricsPipeline(truth, [MetricQuery("router_queue")], MetricsSection(scrape_aligned=True))
    metrics.worker_ready(0, 0.0)
    assert metrics.view(15.0).value("router_queue") == 15.0
    assert truth.asked == []
    with pytest.raises(SimulationError, match="which it does not name in its reads"):
        metrics.view(15.0).value("waiting")
    assert pipeline().next_scrape_s == math.inf
    anything = MetricsPipeline(truth, None, MetricsSection(scrape_aligned=True))
    anything.worker_ready(0, 0.0)
    assert anything.view(15.0).value("kv_usage") == 15.0


def test_a_metric_the_fleet_does_not_have_is_an_error_not_silence() -> None:
    truth = Truth()
    truth.without = {"prefix_hits"}
    query = MetricQuery("prefix_hit_rate")
    metrics = pipeline(query, truth=truth)
    with pytest.raises(SimulationError, match="does not export prefix_hits"):
        metrics.view(15.0).value(query)


def test_a_longer_window_than_was_announced_is_an_error() -> None:
    metrics = pipeline(MetricQuery("waiting", "avg", window_s=30))
    with pytest.raises(SimulationError, match="over more than 30 s"):
        metrics.view(15.0).value(MetricQuery("waiting", "avg", window_s=31))


def test_old_rows_are_forgotten_but_not_the_start_of_a_window() -> None:
    series = SampleSeries(1)
    for second in range(5000):
        series.append(float(second), [float(second)], second - 40.0)
    assert len(series.times) < 200
    assert series.times[0] <= 4999 - 40
    assert (series.rows[:, 0] == series.times).all()
    series.append(4999.0, [7.0], 0.0)
    assert series.rows[-1, 0] == 7.0 and series.times[-2] == 4998.0


def test_the_bridge_is_handed_through() -> None:
    assert pipeline().view(2.0).bridge() == {"now_ms": 2000.0}


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"metric": "waitng"}, "did you mean 'waiting'"),
        ({"metric": "waiting", "over": "rate"}, "over: found 'rate'; must be last or avg for waiting"),
        (
            {"metric": "ttft", "over": "p101"},
            "over: found 'p101'; must be mean or rate or a percentile",
        ),
        ({"metric": "waiting", "reduce": "merge"}, "reduce: found 'merge'; is not possible for waiting"),
        ({"metric": "waiting", "window_s": 0}, "a window is"),
        ({"metric": "waiting", "scale": math.nan}, "a scale is"),
    ],
)
def test_questions_that_make_no_sense(query: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        MetricQuery(**query)


@pytest.mark.parametrize(
    "settings",
    [
        {"scrape_interval_s": 0},
        {"scrape_delay_s": -1},
        {"window_s": math.inf},
        {"buckets": {"waiting": (1.0,)}},
        {"buckets": {"ttft": ()}},
        {"buckets": {"ttft": (2.0, 1.0)}},
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        MetricsSection(**settings)
