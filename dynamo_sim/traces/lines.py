"""The lines of a trace: opening, decompressing, parsing, and what happens to a bad one."""

from __future__ import annotations

import codecs
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import zstandard

from dynamo_sim.errors import TraceError
from dynamo_sim.limits import MAX_REQUESTS
from dynamo_sim.text import counted
from dynamo_sim.traces.decimals import as_written, read_decimal
from dynamo_sim.traces.opening import open_trace

MAX_LINE_BYTES = 1 << 26
"""A longer line is no record of a trace."""


MAX_LINES = 2 * MAX_REQUESTS
"""More of them, as blank ones in a small compressed file, would be read for minutes."""


class BadLine(Exception):
    """One line is wrong. Who reads a line raises it; `TraceLines` decides what comes of it."""


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """A line that was left out because bad lines are to be skipped; ``file`` is None for inline records."""

    file: str | None
    line: int
    reason: str


class RepeatedKeys(dict[str, Any]):
    """A JSON object in which some keys were given more than once (the last value counts)."""

    repeated: frozenset[str] = frozenset()


class TraceLines:
    """The records of one trace, in order, with their line numbers.

    Iterating yields ``(line, value)``: the position from 1 and the parsed JSON value. Blank lines are left
    out but counted (`spec 08, 3`); a byte order mark at the beginning is left out. Inline records are numbered
    from 1 and taken as they would be read from a file.

    Args:
        source: path of a file of JSON lines (``.gz``, ``.zst`` and ``.zstd`` are decompressed), or the
            records.
        skip_bad_lines: note bad lines in ``skipped`` instead of failing at the first.

    Attributes:
        file: the path as text, or None for inline records.
        skipped: what was left out so far.
    """

    def __init__(self, source: str | Path | Sequence[Any], skip_bad_lines: bool = False) -> None:
        self._path = Path(source) if isinstance(source, str | Path) else None
        self._records: Sequence[Any] = () if isinstance(source, str | Path) else source
        self._skip = skip_bad_lines
        self.file = None if self._path is None else str(self._path)
        self.skipped: list[SkippedLine] = []

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        if self._path is None:
            yield from self._inline()
            return
        decode = _DECODER.decode
        try:
            with open_trace(self._path) as file:
                read_line = partial(file.readline, MAX_LINE_BYTES + 1)
                for line, raw in enumerate(iter(read_line, b""), start=1):
                    if line > MAX_LINES:
                        raise TraceError(f"the trace has more than {MAX_LINES:,} lines", self.file)
                    if line == 1:
                        raw = raw.removeprefix(codecs.BOM_UTF8)
                    if not raw or raw.isspace():
                        continue
                    if len(raw) > MAX_LINE_BYTES:
                        raise TraceError(
                            f"the line has more than {MAX_LINE_BYTES:,} bytes; a trace has one record a line",
                            self.file,
                            line,
                        )
                    try:
                        value = decode(raw.decode("utf-8"))
                    except (ValueError, RecursionError) as error:
                        self.refuse(line, f"failed to parse line {line} as JSON: {_explain(error)}")
                        continue
                    yield line, value
        except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise TraceError(f"cannot read the trace: {reason}", self.file) from error

    def _inline(self) -> Iterator[tuple[int, Any]]:
        for line, record in enumerate(self._records, start=1):
            try:
                value = as_written(record)
            except (ValueError, RecursionError) as error:
                self.refuse(line, f"failed to parse line {line} as JSON: {_explain(error)}")
                continue
            yield line, value

    def read_with(self, add: Callable[[int, Any], None]) -> None:
        """Give ``add`` each line with its value, in order; a line of which it raises `BadLine` is refused.

        Raises:
            TraceError: a line is wrong (unless bad lines are skipped), or the file cannot be read.
        """
        for line, value in self:
            try:
                add(line, value)
            except BadLine as bad:
                self.refuse(line, bad)

    def refuse(self, line: int, reason: str | BadLine) -> None:
        """Raise TraceError for a line, or note it as skipped where bad lines are to be skipped."""
        if not self._skip:
            raise TraceError(str(reason), self.file, line)
        self.skipped.append(SkippedLine(self.file, line, str(reason)))

    def nothing_found(self) -> TraceError:
        """The error for a trace without a single usable row."""
        text = "the trace did not contain any requests"
        if self.skipped:
            first, number = self.skipped[0], len(self.skipped)
            were = "was" if number == 1 else "were"
            text += f" ({counted(number, 'bad line')} {were} skipped, the first: line {first.line}, {first.reason})"
        return TraceError(text, self.file)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    marked = RepeatedKeys(plain)
    times = Counter(key for key, _ in pairs)
    marked.repeated = frozenset(key for key, count in times.items() if count > 1)
    return marked


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant, parse_float=read_decimal)


def _explain(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.removesuffix(' at')} at column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    if isinstance(error, RecursionError):
        return "lists or objects are nested too deeply"
    if "digits" in str(error):
        return "a number has thousands of digits"
    return str(error)
