"""The table of trace formats, and what is made of it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from dynamo_sim.scenario.trace_formats import FormatName, RetimedFormatName
from dynamo_sim.traces.detect import detect_format
from dynamo_sim.traces.format import TraceFormat
from dynamo_sim.traces.formats import BY_NAME, FORMATS

ROOT = Path(__file__).resolve().parents[2]


def row_of_document(known: TraceFormat) -> str:
    """The row of a format in the table of `docs/traces.md`."""
    cells = [
        f"`{known.name}`",
        ", ".join(f"`{alias}`" for alias in known.aliases),
        known.line,
        known.arrivals,
        str(known.block_tokens or "recorded"),
        "several" if known.several_files else "one",
        known.closed_loop,
        "yes" if known.with_script else "no",
    ]
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def test_the_document_has_a_row_for_each_format_and_no_other() -> None:
    text = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")
    table = text.split("## The formats")[1].split("\n\n")[1].splitlines()[2:]
    assert table == [row_of_document(known) for known in FORMATS]


def test_each_format_has_a_section_in_the_document() -> None:
    text = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")
    assert [known.name for known in FORMATS if f"\n### {known.name}\n" not in text] == []


def test_the_document_of_scenarios_lists_the_formats() -> None:
    text = (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8")
    assert f"| `format` | mooncake | {', '.join(known.name for known in FORMATS)} |" in text


def test_the_first_page_names_the_formats() -> None:
    first = (ROOT / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    *names, last = (f"`{known.name}`" for known in FORMATS)
    assert f"Traces in the formats {', '.join(names)} and {last} are read" in first


def test_the_document_of_workloads_lists_the_formats_that_can_be_retimed() -> None:
    text = (ROOT / "docs" / "workloads.md").read_text(encoding="utf-8").replace("\n", " ")
    assert f"Formats: {', '.join(get_args(get_args(RetimedFormatName)[0]))} (" in text


def test_a_trace_is_taken_for_the_last_format_that_recognises_it() -> None:
    row = {"hash_ids": [1], "output_length": 1}
    assert detect_format([row]).name == "mooncake"
    assert detect_format([{**row, "wait_for": []}]).name == "agentic_mooncake"
    assert detect_format([{"anything": 1}]).name == FORMATS[0].name


def test_a_name_or_alias_means_one_format() -> None:
    names = [name for known in FORMATS for name in (known.name, *known.aliases)]
    assert len(names) == len(set(names)) == len(BY_NAME)


def test_scenarios_know_the_formats_of_the_table() -> None:
    assert get_args(get_args(FormatName)[0]) == tuple(known.name for known in FORMATS)


def test_requests_that_always_wait_for_others_get_no_other_times() -> None:
    assert "agentic_mooncake" not in get_args(get_args(RetimedFormatName)[0])


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)
def test_a_format_needs_a_closed_loop_where_it_has_no_times(known: TraceFormat) -> None:
    assert known.needs_concurrency == (known.closed_loop == "required") == (not known.has_arrivals)
