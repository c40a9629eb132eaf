"""The printed table (spec 09, 8)."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from dynamo_sim.records.records import RunRecords
from dynamo_sim.report.summary import Summary, summarise
from dynamo_sim.report.table import SHORT_COLUMNS, format_table, print_table
from tests.report.run_records import records_of, served, sla

TIMES = [[1234.5, 1236.5, 1239.5]]

EXPECTED = """\
dynamo_sim | simulated LLM metrics
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━┓
┃ Metric                                             ┃      avg ┃      min ┃      max ┃      p50 ┃      p90 ┃      p95 ┃      p99 ┃   std ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━┩
┃ Time to First Token (ms)                           ┃ 1,234.50 ┃ 1,234.50 ┃ 1,234.50 ┃ 1,234.50 ┃ 1,234.50 ┃ 1,234.50 ┃ 1,234.50 ┃  0.00 ┃
┃ Time to Second Token (ms)                          ┃     2.00 ┃     2.00 ┃     2.00 ┃     2.00 ┃     2.00 ┃     2.00 ┃     2.00 ┃  0.00 ┃
┃ Request Latency (ms)                               ┃ 1,239.50 ┃ 1,239.50 ┃ 1,239.50 ┃ 1,239.50 ┃ 1,239.50 ┃ 1,239.50 ┃ 1,239.50 ┃  0.00 ┃
┃ Inter Token Latency (ms)                           ┃     2.50 ┃     2.00 ┃     3.00 ┃     3.00 ┃     3.00 ┃     3.00 ┃     3.00 ┃  0.50 ┃
┃ Output Token Throughput Per User (tokens/sec/user) ┃   416.67 ┃   333.33 ┃   500.00 ┃   500.00 ┃   500.00 ┃   500.00 ┃   500.00 ┃ 83.33 ┃
┃ Input Sequence Length (tokens)                     ┃   100.00 ┃   100.00 ┃   100.00 ┃   100.00 ┃   100.00 ┃   100.00 ┃   100.00 ┃  0.00 ┃
┃ Output Sequence Length (tokens)                    ┃     3.00 ┃     3.00 ┃     3.00 ┃     3.00 ┃     3.00 ┃     3.00 ┃     3.00 ┃  0.00 ┃
┃ Output Token Throughput (tokens/sec)               ┃     2.42 ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃   N/A ┃
┃ Request Throughput (requests/sec)                  ┃     0.81 ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃   N/A ┃
┃ Request Count (requests)                           ┃     1.00 ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃   N/A ┃
└━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━┘
Prefix Cache Reused Ratio: 0.00
First Admission Prefix Cache Reused Ratio: 0.00"""  # noqa: E501


def test_the_table_says_that_it_is_simulated_and_shows_percentiles() -> None:
    assert format_table(summarise(records_of([served(0, 0.0, TIMES[0])], TIMES))) == EXPECTED


def test_the_wall_time_is_shown_when_it_is_known() -> None:
    text = format_table(summarise(RunRecords(), wall_time_ms=12_345.678))
    assert text.splitlines()[-3] == "Wall Time (ms): 12,345.68"


def test_rows_without_numbers_are_left_out_or_say_so() -> None:
    lines = format_table({}).splitlines()
    assert len(lines) == 8
    assert lines[4].split("┃")[2].strip() == "N/A"


def test_a_narrow_console_does_not_break_lines() -> None:
    written = StringIO()
    print_table(summarise(RunRecords()), Console(file=written, width=40))
    assert written.getvalue() == format_table(summarise(RunRecords())) + "\n"


def printed(summary: Summary, width: int = 160) -> list[str]:
    written = StringIO()
    print_table(summary, Console(file=written, width=width, force_terminal=True))
    return written.getvalue().splitlines()


def a_run(bounds: Any = None) -> Summary:
    return summarise(records_of([served(0, 0.0, TIMES[0]), served(1, 0.0, TIMES[0])], TIMES), bounds)


def test_a_terminal_of_80_columns_gets_a_table_that_fits_it() -> None:
    lines = printed(a_run(), width=80)
    assert max(map(len, lines)) <= 80
    assert lines[1].split() == list(SHORT_COLUMNS)
    assert lines[2].split() == ["TTFT", "(ms)", *["1,234.50"] * 7]
    assert lines[11].split() == ["Requests", "2"]
    assert printed(a_run(), width=160)[1].startswith("┏")


def test_the_wall_time_is_said_to_be_that_of_the_simulator() -> None:
    line = printed(a_run().with_wall_time(50.0))[-3]
    assert line == "Wall Time (ms): 50.00 (what the simulator took for 1.24 simulated seconds)"


def test_small_ratios_are_told_in_percent() -> None:
    summary = a_run()
    summary["prefix_cache_reused_ratio"] = 0.0042
    summary["first_admission_prefix_cache_reused_ratio"] = 0.0012
    best = "found at the best admission"
    assert printed(summary)[-2:] == [
        f"Prefix Cache Reused Ratio: 0.00 (0.42% of the prompt tokens, {best})",
        "First Admission Prefix Cache Reused Ratio: 0.00 (0.12% of the prompt tokens, found at the first admission)",
    ]
    summary["preemptions"] = 4
    assert "best admission: preempted requests find themselves)" in printed(summary)[-3]
    assert printed(summary)[-1] == "Preemptions: 4"


def test_requests_that_were_not_completed_are_counted_below_the_table() -> None:
    summary = a_run()
    summary["rejected_requests"], summary["unfinished_requests"] = 3, 1_200
    assert printed(summary)[-1] == "Not completed: 3 rejected, 1,200 unfinished"


def test_requests_within_the_sla_are_counted_when_there_is_one() -> None:
    assert printed(a_run(sla(ttft_ms=2_000.0)))[-1] == "Within the SLA: 2 of 2 requests that arrived (100.0%)"
    assert printed(a_run(sla(ttft_ms=20.0)))[-1] == "Within the SLA: 0 of 2 requests that arrived (0.0%)"
    assert not any("SLA" in line for line in printed(a_run()))


def test_absurd_numbers_do_not_make_an_absurd_table() -> None:
    summary = a_run()
    summary["max_ttft_ms"] = 4.6e301
    assert "4.60e+301" in printed(summary)[4] and max(map(len, printed(summary))) < 160
