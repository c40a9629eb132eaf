"""A column of token counts in a CSV file."""

from __future__ import annotations

import csv
import difflib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dynamo_sim.errors import TraceError
from dynamo_sim.files.input import refuse_device
from dynamo_sim.limits import MAX_TOKENS


def read_token_column(path: str | Path, column: str) -> npt.NDArray[np.int32]:
    """Read one column of whole numbers from 1; blank lines are left out, ``512.0`` counts as 512.

    Args:
        path: a comma-separated file in UTF-8 whose first line names the columns.
        column: one of those names.

    Raises:
        TraceError: the file cannot be read, has no such column or no rows, a line has a quote without an end
            or too many values, or a value is no token count; says the line and the column.
    """
    try:
        refuse_device(path)
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            header = [name.strip() for name in next(rows, [])]
            position = _position(header, column, path)
            values = [
                _tokens(_cell(row, position, len(header), path, rows.line_num), column, path, rows.line_num)
                for row in rows
                if row
            ]
    except csv.Error as error:
        raise TraceError(f"not a CSV file: {error}", path, rows.line_num) from None
    except UnicodeDecodeError as error:
        raise TraceError(f"not a text file (byte {error.start} is not UTF-8)", path) from None
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror or error}", path) from None
    if not values:
        raise TraceError("has a header and no rows", path)
    return np.array(values, dtype=np.int32)


def _position(header: list[str], column: str, path: str | Path) -> int:
    if not any(header):
        raise TraceError("the first line must name the columns; it is empty", path, 1)
    if header.count(column) > 1:
        raise TraceError(f"column {column!r}: there are {header.count(column)} of that name", path, 1)
    if column in header:
        return header.index(column)
    close = difflib.get_close_matches(column, header, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(map(repr, header[:12]))}"
    raise TraceError(f"column {column!r}: not in the header; {hint}", path, 1)


def _cell(row: list[str], position: int, width: int, path: str | Path, line: int) -> str:
    if any(field.strip() for field in row[width:]):
        raise TraceError(f"found {len(row)} values; the first line names {width} columns", path, line)
    return row[position] if position < len(row) else ""


def _tokens(text: str, column: str, path: str | Path, line: int) -> int:
    try:
        value = float(text)
        tokens = int(value)
        if tokens == value and 1 <= tokens <= MAX_TOKENS:
            return tokens
    except (ValueError, OverflowError):
        pass
    found = f"found {text[:20]!r}" if text.strip() else "the value is missing"
    raise TraceError(f"column {column!r}: {found}; must be a whole number of tokens from 1", path, line)
