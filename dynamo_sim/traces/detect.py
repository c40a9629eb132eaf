"""Recognising the format of a trace by its first rows."""

from __future__ import annotations

from pathlib import Path

from dynamo_sim.errors import TraceError
from dynamo_sim.traces import table
from dynamo_sim.traces.format import Sample, TraceFormat
from dynamo_sim.traces.formats import FORMATS, TraceSource, one_by_one
from dynamo_sim.traces.lines import TraceLines
from dynamo_sim.traces.table_rows import is_table_file

DETECTION_ROWS = 2_000


def detect_format(source: TraceSource) -> TraceFormat:
    """The last format of the table that recognises the first rows of a trace; the first format where none does.

    Raises:
        TraceError: the file cannot be read, or only once, by who reads it after this.
    """
    first = one_by_one(source)[0]
    if isinstance(first, str | Path) and is_table_file(Path(first)):
        return table.FORMAT
    sample = first_rows(source)
    return next((each for each in reversed(FORMATS) if each.recognise(sample)), FORMATS[0])


def first_rows(source: TraceSource) -> Sample:
    """The objects among the first rows of the first file."""
    first = one_by_one(source)[0]
    if isinstance(first, str | Path) and Path(first).is_fifo():
        raise TraceError("a pipe cannot be read twice; say which format it has (--format)", first)
    sample = []
    for line, record in TraceLines(first, skip_bad_lines=True):
        if line > DETECTION_ROWS:
            break
        if isinstance(record, dict):
            sample.append(record)
    return sample
