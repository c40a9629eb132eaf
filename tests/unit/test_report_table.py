"""The printed table (spec 09, 8)."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from dynamo_sim.metrics.records import RunRecords
from dynamo_sim.report.summary import summarise
from dynamo_sim.report.table import format_table, print_table
from tests.unit.report_records import records_of, served

TIMES = [[1234.5, 1236.5, 1239.5]]

EXPECTED = """\
NVIDIA AIPerf | LLM Metrics
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━┓
┃ Metric                                             ┃      avg ┃      min ┃      max ┃      p99 ┃      p90 ┃      p75 ┃   std ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━┩
┃ Time to First Token (ms)                           ┃ 1,234.50 ┃ 1,234.50 ┃ 1,234.50 ┃ 1,234.50 ┃ 1,234.50 ┃ 1,234.50 ┃  0.00 ┃
┃ Time to Second Token (ms)                          ┃     2.00 ┃     2.00 ┃     2.00 ┃     2.00 ┃     2.00 ┃     2.00 ┃  0.00 ┃
┃ Request Latency (ms)                               ┃ 1,239.50 ┃ 1,239.50 ┃ 1,239.50 ┃ 1,239.50 ┃ 1,239.50 ┃ 1,239.50 ┃  0.00 ┃
┃ Inter Token Latency (ms)                           ┃     2.50 ┃     2.00 ┃     3.00 ┃     3.00 ┃     3.00 ┃     3.00 ┃  0.50 ┃
┃ Output Token Throughput Per User (tokens/sec/user) ┃   416.67 ┃   333.33 ┃   500.00 ┃   500.00 ┃   500.00 ┃   500.00 ┃ 83.33 ┃
┃ Output Token Throughput (tokens/sec)               ┃     2.42 ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃   N/A ┃
┃ Request Throughput (requests/sec)                  ┃     0.81 ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃   N/A ┃
┃ Request Count (requests)                           ┃     1.00 ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃      N/A ┃   N/A ┃
└━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━━━━┴━━━━━━━┘
Prefix Cache Reused Ratio: 0.00
First Admission Prefix Cache Reused Ratio: 0.00"""  # noqa: E501


def test_the_table_has_the_form_of_aiperf() -> None:
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
