"""The rows of a table of requests: comma-separated, Parquet, or JSON lines, one at a time."""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

from dynamo_sim.errors import TraceError
from dynamo_sim.traces.lines import TraceLines
from dynamo_sim.traces.opening import GZIP_SUFFIXES, ZSTD_SUFFIXES, open_trace

DELIMITERS = ",;\t|"
CSV_SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET_SUFFIXES = (".parquet", ".pq")
PARQUET_ROWS = 8192
"""Rows of a Parquet file in memory at a time."""

Row = dict[str, Any]


def is_table_file(path: Path) -> bool:
    """Whether the name of a file says that it is a table and no file of JSON lines."""
    return _kind(path) in (*CSV_SUFFIXES, *PARQUET_SUFFIXES)


def rows_of(lines: TraceLines) -> Iterator[tuple[int, Row]]:
    """The line (of Parquet files the row, from 1) and the values of each row by the names of their columns.

    Values of comma-separated files are texts; an empty one is None.

    Raises:
        TraceError: the file cannot be read, or has no header.
    """
    path = None if lines.file is None else Path(lines.file)
    if path is None or not is_table_file(path):
        found: Iterator[tuple[int, Any]] = iter(lines)
    elif _kind(path) in PARQUET_SUFFIXES:
        found = _parquet_rows(path)
    else:
        found = _csv_rows(path, lines)
    for line, row in found:
        if isinstance(row, dict):
            yield line, {name: None if value == "" else value for name, value in row.items()}
        else:
            lines.refuse(line, "must be an object with the columns as its keys")


def _kind(path: Path) -> str:
    """The suffix that says what is in a file, below one that says how it is compressed."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in (*GZIP_SUFFIXES, *ZSTD_SUFFIXES):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _csv_rows(path: Path, lines: TraceLines) -> Iterator[tuple[int, Row]]:
    line = 1
    try:
        with open_trace(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as file:
            header_line = file.readline()
            delimiter = max(DELIMITERS, key=header_line.count)
            header = [name.strip() for name in next(csv.reader([header_line], delimiter=delimiter), [])]
            if len(header) < 2 or not all(header):
                raise TraceError("the first line must name the columns", path, 1)
            _refuse_equal_names(header, path)
            rows = csv.reader(file, delimiter=delimiter, strict=True)
            for values in rows:
                line = rows.line_num + 1
                if not any(values):
                    continue
                if len(values) > len(header):
                    lines.refuse(
                        line, f"found {len(values)} values; the first line names {len(header)} columns"
                    )
                    continue
                yield line, dict(zip(header, map(str.strip, values), strict=False))
    except csv.Error as error:
        raise TraceError(f"not a CSV file: {error}", path, line + 1) from None
    except UnicodeDecodeError as error:
        raise TraceError(f"not a text file (byte {error.start} is not UTF-8)", path) from None
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TraceError(f"cannot read the trace: {reason}", path) from error


def _parquet_rows(path: Path) -> Iterator[tuple[int, Row]]:
    import pyarrow as pa  # slow to import, and few traces need it
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            _refuse_equal_names(file.schema_arrow.names, path)  # of such columns `to_pylist` keeps one
            row = 0
            for batch in file.iter_batches(PARQUET_ROWS):
                for values in batch.to_pylist():
                    row += 1
                    yield row, values
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"cannot be read as a Parquet file: {error}", path) from error


def _refuse_equal_names(names: list[str], path: Path) -> None:
    for name in names:
        if names.count(name) > 1:
            raise TraceError(f"column {name!r}: there are {names.count(name)} of that name", path, 1)
