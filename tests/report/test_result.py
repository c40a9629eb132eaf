"""Tables of a result, and what it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from dynamo_sim.records.records import RunRecords
from dynamo_sim.report import saving
from dynamo_sim.report.html import page
from dynamo_sim.report.result import RunResult
from tests.report.run_records import ToyScenario, records_of, rejected, served, sla, toy_run

ALL_FILES = [
    "fleet.csv",
    "gantt.png",
    "latency.png",
    "meta.json",
    "passes.parquet",
    "requests.parquet",
    "scenario.yaml",
    "summary.json",
    "timeline.png",
    "ttft_over_time.png",
]


@pytest.fixture(scope="module")
def toy() -> RunResult:
    return RunResult(toy_run(60), ToyScenario(sla(ttft_ms=50.0)))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_requests_has_a_row_for_every_request_that_arrived() -> None:
    cut = served(1, 1.0, [9.0], output_tokens=4)
    frame = RunResult(records_of([served(0, 0.0, [3.0, 5.0]), cut, rejected(2, 2.0)], [])).requests
    assert frame["outcome"].tolist() == ["completed", "unfinished", "rejected"]
    assert frame["ttft_ms"].tolist()[:2] == [3.0, 8.0]
    assert frame["e2e_ms"].isna().tolist() == [False, False, True]
    assert frame["session_id"].isna().all()


def test_requests_agree_with_the_summary(toy: RunResult) -> None:
    counting = toy.requests.dropna(subset="first_token_ms")
    assert counting["ttft_ms"].mean() == pytest.approx(toy.summary.mean_ttft_ms)
    assert counting["output_tokens"].sum() == toy.summary.total_output_tokens


def test_passes_has_a_row_for_every_pass(toy: RunResult) -> None:
    assert len(toy.passes) == sum(len(log.ends_ms) for log in toy.records.fleets[0].passes)
    assert (toy.passes["end_ms"] > toy.passes["start_ms"]).all()
    assert toy.passes["output_tokens"].sum() == toy.requests["emitted_tokens"].sum()


def test_fleet_has_a_row_for_every_change(toy: RunResult) -> None:
    assert toy.fleet["cause"].tolist() == ["start", "added", "cancelled", "ready", "marked", "removed"]
    assert toy.fleet["worker_ids"].tolist()[1] == (2, 3, 4)
    assert toy.fleet["starting"].tolist() == [0, 3, 2, 0, 0, 0]


def test_tables_of_an_empty_run_have_their_columns(toy: RunResult) -> None:
    empty = RunResult(RunRecords())
    for name in ("requests", "passes", "fleet"):
        frame = getattr(empty, name)
        assert len(frame) == 0
        assert list(frame) == list(getattr(toy, name))


def test_the_summary_follows_the_sla_of_the_scenario(toy: RunResult) -> None:
    assert "goodput_completed_requests" in toy.summary
    assert "goodput_completed_requests" not in RunResult(toy.records).summary


def test_save_writes_everything(toy: RunResult, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "run"
    files = toy.save(target)
    assert names(target) == ALL_FILES == [path.name for path in files]
    assert names(target.parent) == ["run"]
    summary = (target / "summary.json").read_text(encoding="utf-8")
    assert json.loads(summary) == dict(toy.summary)
    assert summary == json.dumps(toy.summary, indent=2, sort_keys=True) + "\n"
    assert yaml.safe_load((target / "scenario.yaml").read_text(encoding="utf-8")) == toy.scenario.to_dict()
    meta = json.loads((target / "meta.json").read_text(encoding="utf-8"))
    assert meta["seed"] == 7 and meta["name"] == "toy" and meta["version"]
    pd.testing.assert_frame_equal(pd.read_parquet(target / "requests.parquet"), toy.requests)
    assert len(pd.read_parquet(target / "passes.parquet")) == len(toy.passes)
    assert pd.read_csv(target / "fleet.csv", dtype=str)["worker_ids"].tolist()[:2] == ["0 1", "2 3 4"]


def test_two_saves_have_the_same_bytes(toy: RunResult, tmp_path: Path) -> None:
    toy.save(tmp_path / "one")
    RunResult(toy_run(60), ToyScenario(sla(ttft_ms=50.0))).save(tmp_path / "two")
    for name in ALL_FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_the_speed_of_the_simulator_is_not_saved(tmp_path: Path) -> None:
    records = toy_run(5)
    result = RunResult(records, None, RunResult(records).summary.with_wall_time(3.0))
    result.save(tmp_path / "run", plots=False)
    assert "wall_time_ms" not in json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))


def test_save_works_without_scenario_passes_and_pictures(tmp_path: Path) -> None:
    records = toy_run(5)
    records.fleets[0].passes = []
    RunResult(records).save(tmp_path / "run", plots=False, requests_format="csv")
    assert names(tmp_path / "run") == ["fleet.csv", "meta.json", "requests.csv", "summary.json"]
    assert len(pd.read_csv(tmp_path / "run" / "requests.csv")) == 5


def test_the_scenario_says_what_is_written(tmp_path: Path) -> None:
    scenario: Any = ToyScenario()
    scenario.report = type("Report", (), {"plots": False, "requests_format": "csv"})()
    RunResult(toy_run(5), scenario).save(tmp_path / "run")
    assert names(tmp_path / "run") == [
        "fleet.csv",
        "meta.json",
        "passes.csv",
        "requests.csv",
        "scenario.yaml",
        "summary.json",
    ]


def test_an_earlier_result_is_replaced_and_other_files_stay(toy: RunResult, tmp_path: Path) -> None:
    target = tmp_path / "run"
    toy.save(target)
    (target / "notes.txt").write_text("mine", encoding="utf-8")
    toy.save(target, plots=False, requests_format="csv")
    assert "requests.parquet" not in names(target) and "latency.png" not in names(target)
    assert "requests.csv" in names(target) and "notes.txt" in names(target)


def test_nothing_stays_of_a_save_that_fails(
    toy: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> str:
        raise OSError("disk full")

    monkeypatch.setattr(saving, "scenario_yaml", fail)
    with pytest.raises(OSError, match="disk full"):
        toy.save(tmp_path / "run")
    assert names(tmp_path) == []


def test_an_unknown_format_is_refused(toy: RunResult, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="parquet, csv"):
        toy.save(tmp_path / "run", requests_format="xlsx")


def test_a_file_is_not_overwritten_by_a_directory(toy: RunResult, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("", encoding="utf-8")
    with pytest.raises(NotADirectoryError):
        toy.save(tmp_path / "run")


def test_numbers_that_json_cannot_hold_become_null(tmp_path: Path) -> None:
    result = RunResult(RunRecords())
    result.summary["gpu_hours"] = float("nan")
    result.save(tmp_path / "run", plots=False)
    assert json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))["gpu_hours"] is None


def test_a_result_introduces_itself(toy: RunResult) -> None:
    assert repr(toy).startswith("<RunResult of toy: 60 of 60 requests, ")
    assert toy._repr_html_().startswith("<table>")


def test_the_page_holds_everything_it_shows(toy: RunResult, tmp_path: Path) -> None:
    text = toy.save_html(tmp_path / "pages" / "run.html").read_text(encoding="utf-8")
    assert names(tmp_path / "pages") == ["run.html"]
    assert text.count("data:image/png;base64,") == 4
    assert "Time to First Token (ms)" in text and "within the SLA" in text and "ttft_ms: 50.0" in text
    assert "http" not in text


def test_the_page_of_a_run_that_served_nobody_says_so() -> None:
    text = page(RunResult(RunRecords(requests=[rejected(0, 0.0)])))
    assert "None of 1 requests got a token" in text and "<table>" not in text


def test_the_page_escapes_what_people_wrote(tmp_path: Path) -> None:
    scenario: Any = ToyScenario()
    scenario.name = "<script>"
    assert "<script>" not in RunResult(RunRecords(), scenario).save_html(tmp_path / "x.html").read_text(
        encoding="utf-8"
    )


def test_the_page_says_first_what_matters_and_what_its_pictures_show(toy: RunResult) -> None:
    text = page(toy)
    assert text.index('class="figures"') < text.index("<h2>Numbers</h2>")
    assert "prefers-color-scheme: dark" in text
    assert 'alt="Cumulative distributions of 60 requests: TTFT ' in text
    assert 'alt="Over ' in text and "2 to 5 workers" in text
