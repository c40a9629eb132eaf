"""The format `table`: columns, times, lengths and shared beginnings."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.simulation import run
from dynamo_sim.traces.conversations import Conversations
from dynamo_sim.traces.detect import detect_format
from dynamo_sim.traces.formats import read_trace
from dynamo_sim.workload.turns import TraceTurns

AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:15:46.6805900,374,44\r\n"
    "2023-11-16 18:15:50.9951690,396,109"
)


def table(path: Path, text: str, **options: Any) -> Conversations:
    path.write_text(text, encoding="utf-8", newline="")
    content = read_trace(path, "table", **options)
    assert isinstance(content, Conversations)
    return content


def lengths(content: Conversations) -> list[tuple[int, int]]:
    rows = [row for (row,) in content.rows]
    return [(content.turns.input_tokens(row), content.turns.output_tokens(row)) for row in rows]


def test_dates_with_seven_digits_of_a_second_are_exact(tmp_path: Path) -> None:
    content = table(tmp_path / "azure.csv", AZURE)
    assert content.starts == [0.0, 4314.579]
    assert lengths(content) == [(374, 44), (396, 109)]


def test_dates_may_have_a_zone(tmp_path: Path) -> None:
    rows = "time,input_tokens,output_tokens\n2024-05-10T02:00:00.25+02:00,5,6\n2024-05-10 00:00:01,7,8\n"
    assert table(tmp_path / "x.csv", rows).starts == [0.0, 750.0]


@pytest.mark.parametrize(
    ("unit", "starts"), [("s", [0.0, 1500.0]), ("ms", [0.0, 1.5]), ("us", [0.0, 0.0015]), ("ns", [0.0, 1e-6])]
)
def test_numbers_have_the_unit_that_is_given(tmp_path: Path, unit: str, starts: list[float]) -> None:
    content = table(tmp_path / "x.csv", "timestamp;isl;osl\n100;5;6\n101.5;7;8\n", time_unit=unit)
    assert content.starts == starts


def test_the_unit_may_be_in_the_name_of_the_column(tmp_path: Path) -> None:
    rows = "arrival_us,prompt_tokens,completion_tokens\n1700000000000000,5,6\n1700000000000250,7,8\n"
    assert table(tmp_path / "x.csv", rows).starts == [0.0, 0.25]


def test_rows_are_served_by_arrival_whatever_their_order(tmp_path: Path) -> None:
    content = table(tmp_path / "x.csv", "arrival_ms,isl,osl\n30,5,6\n10,7,8\n30,9,1\n")
    assert (content.starts, lengths(content)) == ([0.0, 20.0, 20.0], [(7, 8), (5, 6), (9, 1)])


def test_parquet_and_json_lines_and_compressed_files_say_the_same(tmp_path: Path) -> None:
    at = [datetime(2024, 1, 1, 0, 0, 0, 500_000, UTC), datetime(2024, 1, 1, 0, 0, 2, tzinfo=UTC)]
    frame = pd.DataFrame({"timestamp": at, "input_length": [5, 7], "output_length": [6, 8]})
    frame.to_parquet(tmp_path / "x.parquet")
    frame.to_json(tmp_path / "x.jsonl", orient="records", lines=True, date_format="iso", date_unit="us")
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    for name in ("x.parquet", "x.jsonl", "x.csv.gz"):
        content = read_trace(tmp_path / name, "table")
        assert isinstance(content, Conversations)
        assert (content.starts, lengths(content)) == ([0.0, 1500.0], [(5, 6), (7, 8)]), name


def test_rows_without_tokens_are_left_out_and_listed(tmp_path: Path) -> None:
    content = table(tmp_path / "x.csv", "arrival_s,request tokens,response tokens\n1,0,0\n2,5,6\n3,5,0\n")
    assert lengths(content) == [(5, 6)]
    assert [skip.line for skip in content.skipped] == [2, 4]


def test_prompts_are_unlike_each_other_but_for_their_prefix(tmp_path: Path) -> None:
    rows = "arrival_s,isl,osl,prefix,prefix_tokens\n1,64,1,a,40\n2,64,1,a,16\n3,64,1,b,40\n4,64,1,,\n5,64,1,a,64\n"
    content = table(tmp_path / "x.csv", rows)
    turns = TraceTurns(content.turns)
    first, second, third, fourth, fifth = (
        [value for value, count in turns.runs_of(row) for _ in range(count)] for row in range(5)
    )
    assert first[:16] == second[:16] and first[16] != second[16]
    assert first[:32] == fifth[:32] and first[32] != fifth[32]
    assert not {*first} & {*third} and not {*third} & {*fourth}


def test_a_table_runs(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(AZURE.replace("TIMESTAMP", "when"), encoding="utf-8")
    scenario = Scenario.from_dict(
        {
            "name": "x",
            "workload": {
                "kind": "trace",
                "format": "table",
                "path": "x.csv",
                "columns": {"arrival": "when"},
                "time_unit": "datetime",
            },
            "fleet": {"workers": 2},
        },
        tmp_path,
    )
    result = run(scenario)
    assert result.summary.completed_requests == 2
    assert result.requests["arrival_ms"].tolist() == [0.0, 4314.579]


def test_a_table_without_times_needs_a_closed_loop(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("isl,osl\n5,6\n7,8\n", encoding="utf-8")
    data = {"name": "x", "workload": {"kind": "trace", "format": "table", "path": "x.csv"}}
    with pytest.raises(TraceError, match=r"name it as columns\.arrival, or give limits\.concurrency"):
        run(Scenario.from_dict(data, tmp_path))
    closed = Scenario.from_dict({**data, "limits": {"concurrency": 1}}, tmp_path)
    assert run(closed).summary.completed_requests == 2


def test_a_table_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(AZURE, encoding="utf-8")
    assert detect_format(tmp_path / "x.csv").name == "table"
    assert detect_format([{"arrival_s": 1, "input_tokens": 5, "output_tokens": 6}]).name == "table"
    mooncake = {"timestamp": 1, "input_length": 5, "output_length": 6, "hash_ids": [1]}
    assert detect_format([mooncake]).name == "mooncake"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("timestamp,isl,osl\n5,1,1\n", {}, "time_unit: missing; column 'timestamp' has numbers such as 5"),
        ("arrival_s;isl;osl\n0,5;1;1\n", {}, "column 'arrival_s': found '0,5'; must be a time in s"),
        (
            "arrival_s,isl\n5,1\n",
            {},
            "columns.output_tokens: missing; none of the columns has a name that says it",
        ),
        (
            "arrival_s,time,isl,osl\n5,5,1,1\n",
            {},
            "columns.arrival: could be 'arrival_s' or 'time'; say which",
        ),
        (
            "arrival_s,isl,osl\n5,1,1\n",
            {"columns": {"arrival": "when"}},
            "columns.arrival: there is no column 'when'",
        ),
        ("arrival_s,isl,osl,prefix\n5,1,1,a\n", {}, "columns.prefix_tokens: missing"),
        ("arrival_s,isl,osl\n5,1.5,1\n", {}, "column 'isl': found '1.5'; must be a whole number from 0"),
        ("arrival_s,isl,osl\n5,-1,1\n", {}, "column 'isl': found '-1'; must be a whole number from 0"),
        ("arrival_s,isl,osl\n5,,1\n", {}, "column 'isl': the value is missing"),
        ("arrival_s,isl,osl\n5,1,1\n6,,1\n", {}, "column 'isl': the value is missing"),
        (
            "arrival_s,isl,osl\nnan,1,1\n",
            {"time_unit": "s"},
            "column 'arrival_s': found 'nan'; must be a time in s",
        ),
        ("arrival_s,isl,osl\n5,1,1,9\n", {}, "found 4 values; the first line names 3 columns"),
        ("time,isl,osl\nyesterday,1,1\n", {}, "must be a date and time like 2024-05-10 08:30:00.25"),
        ("isl,isl,osl\n1,1,1\n", {}, "column 'isl': there are 2 of that name"),
        ("arrival_s,isl,osl\n", {}, "the trace did not contain any requests"),
        ("", {}, "the first line must name the columns"),
    ],
)
def test_errors(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError) as caught:
        table(tmp_path / "x.csv", text, **options)
    assert message in str(caught.value)


def test_columns_belong_to_tables() -> None:
    workload = {"kind": "trace", "records": [{}], "columns": {"arrival": "x"}}
    with pytest.raises(
        ScenarioError, match=r"workload\.columns: is possible only for format table, not for mooncake"
    ):
        Scenario.from_dict({"name": "x", "workload": workload})


def test_parquet_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    columns = {"arrival_s": [0.0], "isl": [5], "again": [7], "osl": [6]}
    pq.write_table(
        pa.table(columns).rename_columns(["arrival_s", "isl", "isl", "osl"]), tmp_path / "x.parquet"
    )
    with pytest.raises(TraceError, match="column 'isl': there are 2 of that name"):
        read_trace(tmp_path / "x.parquet", "table")


@pytest.mark.parametrize("value", [time(1, 2), timedelta(seconds=3)])
def test_times_of_day_and_durations_are_no_arrivals(tmp_path: Path, value: time | timedelta) -> None:
    pq.write_table(pa.table({"timestamp": [value], "isl": [5], "osl": [6]}), tmp_path / "x.parquet")
    with pytest.raises(TraceError, match="must be numbers, or dates with times"):
        read_trace(tmp_path / "x.parquet", "table")
