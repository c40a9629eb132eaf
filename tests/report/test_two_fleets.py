"""The report of a run with a prefill and a decode fleet, from records made by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamo_sim.cli.compare_table import figures_of
from dynamo_sim.records.records import RunRecords
from dynamo_sim.report.html import page
from dynamo_sim.report.result import RunResult
from tests.report.run_records import handed_over, rejected, served, toy_run, two_fleets

PHASES = ["queue", "prefill", "wait for room", "transfer", "wait for batch", "decode"]


def tokens(arrival_ms: float) -> list[float]:
    return [arrival_ms + 45.0, arrival_ms + 60.0, arrival_ms + 75.0]


@pytest.fixture(scope="module")
def result() -> RunResult:
    arrivals = [float(10 * n) for n in range(30)]
    return RunResult(two_fleets([handed_over(n, at, tokens(at)) for n, at in enumerate(arrivals)]))


def axes() -> Axes:
    return Figure(figsize=(9, 5), layout="constrained").subplots()


def labels(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def test_the_breakdown_adds_up_to_the_mean_latency(result: RunResult) -> None:
    assert result.breakdown["phase"].tolist() == PHASES
    assert result.breakdown["mean_ms"].tolist() == [10.0, 20.0, 5.0, 8.0, 2.0, 30.0]
    assert result.breakdown["mean_ms"].sum() == result.summary["mean_e2e_latency_ms"]
    assert result.breakdown["share"].sum() == pytest.approx(1.0)


def test_one_line_says_where_the_time_goes(result: RunResult) -> None:
    assert result.breakdown_line == (
        "Mean time of a request: queue 10 ms, prefill 20 ms, wait for room 5 ms, transfer 8 ms, "
        "wait for batch 2 ms, decode 30 ms"
    )
    assert RunResult(toy_run(5)).breakdown_line == ""


def test_rows_of_requests_have_the_milestones_of_the_handoff(result: RunResult) -> None:
    row = result.requests.iloc[1]
    assert (row["prefill_worker_id"], row["decode_worker_id"]) == (0, 1)
    assert row["source_held_ms"] == 40.0 and row["destination_reserved_ms"] == 45.0
    assert row["transfer_done_ms"] - row["transfer_started_ms"] == 8.0
    assert "source_held_ms" not in RunResult(toy_run(5)).requests
    assert result.phases["source_hold_ms"].tolist() == [14.5] * 30


def test_hours_are_those_of_each_fleet(result: RunResult) -> None:
    prefill, decode = result.records.fleets
    assert (prefill.worker_hours, prefill.gpu_hours) == (1.0 / 3600.0, 2.0 / 3600.0)
    assert decode.gpu_hours == 2.0 / 3600.0
    assert result.fleet_line == (
        "Prefill: 1 worker, 0.00 worker hours, 0.00 GPU hours; decode: 2 workers, 0.00 GPU hours; "
        "0.00 GPU hours in all"
    )


def test_a_comparison_has_the_phases_and_the_hours_of_each_fleet(result: RunResult) -> None:
    figures = dict(figures_of([("one fleet", RunResult(toy_run(5))), ("two fleets", result)]))
    assert figures["mean transfer (ms)"] == ["-", "8.0"]
    assert figures["mean prefill workers"] == ["-", "1.0"]
    assert figures["prefill GPU hours"] == ["-", "0.001"]
    alone = dict(figures_of([("one fleet", RunResult(toy_run(5)))]))
    assert "mean transfer (ms)" not in alone and "mean decode (ms)" not in alone


def test_the_waterfall_has_a_row_a_phase_and_one_for_each_side(result: RunResult) -> None:
    ax = axes()
    assert result.plot.waterfall(7, ax) is ax
    assert labels(ax) == [*PHASES, "held by the prefill worker", "room kept by the decode worker"]
    assert ax.get_title("left") == "Request 7: 100 tokens in, 3 out, prefill worker 0, decode worker 1"
    with pytest.raises(ValueError, match="no request 99 has arrived"):
        result.plot.waterfall(99, axes())


def test_the_waterfall_also_shows_a_request_of_one_fleet_and_one_that_failed() -> None:
    result = RunResult(RunRecords(requests=[served(0, 0.0, [10.0, 20.0]), rejected(1, 7.0)]))
    ax = axes()
    result.plot.waterfall(0, ax)
    assert labels(ax) == ["queue", "prefill", "decode"]
    assert result.plot.waterfall(1, axes()).get_title("left").endswith("rejected")


def test_the_chart_of_passes_has_transfers_between_the_fleets(result: RunResult) -> None:
    ax = axes()
    result.plot.gantt(ax)
    assert sorted(zip(ax.get_yticks(), labels(ax), strict=True)) == [
        (0, "prefill 0"),
        (1, "transfers"),
        (2, "decode 0"),
        (3, "decode 1"),
    ]
    legend = ax.get_legend()
    assert legend is not None and "KV transfers (peak 1)" in [text.get_text() for text in legend.get_texts()]


def test_the_timeline_shows_both_fleets_and_what_is_between_them(result: RunResult) -> None:
    titles = [ax.get_title("left").split("\n")[0] for ax in result.plot.figure("timeline").axes]
    assert [title.split(",")[0].split(":")[0] for title in titles] == [
        "Request rate",
        "Prefill workers by state",
        "Decode workers by state",
        "Queue",
        "Between the fleets",
        "KV cache in use",
        "KV cache in use",
    ]


RUNS = {
    "no request": lambda: two_fleets([]),
    "no passes": lambda: two_fleets([handed_over(0, 0.0, tokens(0.0))], record_passes=False),
    "nothing completed": lambda: two_fleets([handed_over(0, 0.0, tokens(0.0), reserved_first=True)][:0]),
    "one request": lambda: two_fleets([handed_over(0, 0.0, tokens(0.0), reserved_first=True)]),
    "many transfers": lambda: two_fleets([handed_over(n, n / 4, tokens(n / 4)) for n in range(2_000)]),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.filterwarnings("error")
def test_every_picture_can_be_drawn_of_every_run(run: str) -> None:
    result = RunResult(RUNS[run]())
    for name in result.plot.names:
        result.plot.figure(name).canvas.draw()
    assert "breakdown" in result.plot.names


def test_the_page_and_the_folder_have_the_breakdown(result: RunResult, tmp_path: Path) -> None:
    assert "Mean time of a request: queue 10 ms" in page(result)
    result.save(tmp_path / "run", requests_format="csv")
    assert pd.read_csv(tmp_path / "run" / "breakdown.csv")["phase"].tolist() == PHASES
    assert (tmp_path / "run" / "breakdown.png").exists()
    assert "fleet" in pd.read_csv(tmp_path / "run" / "fleet.csv")
    RunResult(toy_run(5)).save(tmp_path / "run", plots=False, requests_format="csv")
    assert not (tmp_path / "run" / "breakdown.csv").exists()
