"""The format ``table``: one request a row, with times and lengths in columns of any names."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from dynamo_sim.errors import TraceError
from dynamo_sim.limits import MAX_TOKENS
from dynamo_sim.text import cut
from dynamo_sim.traces.conversations import Conversations
from dynamo_sim.traces.format import ReadOptions, Sample, TraceFormat
from dynamo_sim.traces.lines import BadLine, SkippedLine, TraceLines
from dynamo_sim.traces.table_rows import Row, rows_of
from dynamo_sim.traces.turn_table import TurnTable

TIME_UNITS_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DATETIME = "datetime"

KNOWN_NAMES: dict[str, tuple[str, ...]] = {
    "arrival": (
        "arrival", "arrival_time", "arrived_at", "arrival_timestamp", "timestamp", "time", "request_time",
        "start_time", "created_at",
    ),
    "input_tokens": (
        "input_tokens", "input_length", "input_len", "input_toks", "prompt_tokens", "prompt_length", "prompt_len",
        "context_tokens", "request_tokens", "num_prefill_tokens", "prompt_size", "isl",
    ),
    "output_tokens": (
        "output_tokens", "output_length", "output_len", "output_toks", "generated_tokens", "completion_tokens",
        "response_tokens", "num_decode_tokens", "token_size", "osl",
    ),
    "session": ("session", "session_id", "conversation", "conversation_id"),
    "priority": ("priority",),
    "prefix": ("prefix", "prefix_id", "prefix_group"),
    "prefix_tokens": ("prefix_tokens", "prefix_length", "prefix_len"),
}  # fmt: skip
"""Names of columns that are recognised by themselves; capitals, blanks and ``-`` make no difference."""

REQUIRED = ("input_tokens", "output_tokens")
_FRACTION = re.compile(r"^(.*\d:\d\d:\d\d)[.,](\d+)(.*)$")
_MAX_NS = 2**62


@dataclass(frozen=True, slots=True)
class _Columns:
    """The column of each part of a request, and the unit of the arrivals."""

    of: Mapping[str, str]
    unit: str

    @property
    def has_arrivals(self) -> bool:
        """Whether there are times; without them only a closed loop can run the table."""
        return "arrival" in self.of

    def value(self, row: Row, part: str) -> Any:
        """What a row says of a part; None where it says nothing."""
        return row.get(self.of.get(part, ""))


class _Reader:
    """Requests as far as they have been read.

    The prompt of a request is unlike all others, but for the leading tokens of those with the same ``prefix``.

    Args:
        columns: where things stand.
        block_tokens: tokens an id, to which shared beginnings are rounded down.
    """

    def __init__(self, columns: _Columns, block_tokens: int) -> None:
        self.columns = columns
        self.shares = "prefix" in columns.of
        self.table = TurnTable(block_tokens if self.shares else MAX_TOKENS)
        self.arrivals_ns = array("q")
        self.names: list[str] = []
        self.lines = array("q")
        self.prefixes: dict[str, list[int]] = {}
        self.next_id = 0

    def add(self, line: int, row: Row) -> str | None:
        """Take in one request; why it is left out, if it is.

        Raises:
            BadLine: a value is missing or impossible; nothing has changed then.
        """
        columns = self.columns
        arrival_ns = 0
        if columns.has_arrivals:
            arrival_ns = _time_ns(columns.of["arrival"], columns.value(row, "arrival"), columns.unit)
        prompt, answer = (
            _count(columns.of[part], columns.value(row, part)) for part in ("input_tokens", "output_tokens")
        )
        priority = columns.value(row, "priority")
        priority = 0 if priority is None else _count(columns.of["priority"], priority, low=-(2**31))
        if not (prompt and answer):
            return f"has {prompt} prompt and {answer} output tokens, so there is nothing to serve"
        first = self.table.store_ids(self._ids(row, prompt))
        self.table.add(first, prompt, answer, priority=priority)
        self.arrivals_ns.append(arrival_ns)
        session = columns.value(row, "session")
        self.names.append(f"request_{line}" if session is None else str(session))
        self.lines.append(line)
        return None

    def _ids(self, row: Row, prompt: int) -> list[int]:
        """Ids of a prompt: those of its prefix, then new ones."""
        block = self.table.block_tokens
        shared: list[int] = []
        name = self.columns.value(row, "prefix")
        if name is not None:
            length = _count(self.columns.of["prefix_tokens"], self.columns.value(row, "prefix_tokens"))
            shared = self.prefixes.setdefault(str(name), [])
            count = min(length, prompt) // block
            shared.extend(self._new_ids(count - len(shared)))
            shared = shared[:count]
        return shared + self._new_ids(-(-prompt // block) - len(shared))

    def _new_ids(self, count: int) -> list[int]:
        first, self.next_id = self.next_id, self.next_id + max(count, 0)
        return list(range(first, self.next_id))


def _read(files: Sequence[TraceLines], options: ReadOptions) -> Conversations:
    """Read the requests of one file, by arrival.

    Raises:
        TraceError: a column is missing, a row is wrong (unless bad rows are skipped), or there is no row.
    """
    (lines,) = files
    reader: _Reader | None = None
    for line, row in rows_of(lines):
        try:
            if reader is None:
                reader = _Reader(_find_columns(lines, line, row, options), options.given_block_tokens)
            reason = reader.add(line, row)
        except BadLine as bad:
            lines.refuse(line, bad)
        else:
            if reason is not None:
                lines.skipped.append(SkippedLine(lines.file, line, reason))
    if reader is None or not reader.names:
        raise lines.nothing_found()
    arrivals_ns = reader.arrivals_ns
    order = sorted(range(len(arrivals_ns)), key=arrivals_ns.__getitem__)
    first_ns, has_arrivals = arrivals_ns[order[0]], reader.columns.has_arrivals
    return Conversations(
        turns=reader.table,
        names=[reader.names[row] for row in order],
        rows=[(row,) for row in order],
        starts=[(arrivals_ns[row] - first_ns) / 1e6 if has_arrivals else None for row in order],
        delays=array("d", bytes(8 * len(order))),
        lines=reader.lines,
        file=lines.file,
        skipped=lines.skipped,
    )


# ---------------------------------------------------------------- columns


def _find_columns(lines: TraceLines, line: int, row: Row, options: ReadOptions) -> _Columns:
    """Where things stand in a table, from its first row.

    Raises:
        TraceError: a column is missing, or several could be meant, or the unit of the times is not known.
        BadLine: the row has no arrival, so it does not show their unit.
    """
    given = dict(options.columns or {})
    for part, name in given.items():
        if name not in row:
            raise TraceError(
                f"columns.{part}: there is no column {name!r}; there are {_listed(row)}",
                lines.file,
                line,
            )
    found = dict(given)
    for part, names in KNOWN_NAMES.items():
        if part in given:
            continue
        like = [
            name
            for name in row
            if _plain(name) in names or (part == "arrival" and _without_unit(name) in names)
        ]
        if len(like) > 1:
            raise TraceError(
                f"columns.{part}: could be {' or '.join(map(repr, like))}; say which", lines.file, line
            )
        if like:
            found[part] = like[0]
        elif part in REQUIRED:
            raise TraceError(
                f"columns.{part}: missing; none of the columns has a name that says it: {_listed(row)}",
                lines.file,
                line,
            )
    if "prefix" in found and "prefix_tokens" not in found:
        raise TraceError(
            "columns.prefix_tokens: missing; a column must say how many tokens those of one prefix share",
            lines.file,
            line,
        )
    unit = options.time_unit
    if unit is None and "arrival" in found:
        unit = _unit_of(lines, line, found["arrival"], row)
    return _Columns(found, unit or DATETIME)


def _unit_of(lines: TraceLines, line: int, name: str, row: Row) -> str:
    """The unit of the arrivals, from the values or the name of their column."""
    value = row[name]
    if value is None:
        raise BadLine(f"column {name!r}: the value is missing; must be a time")
    named = next((unit for unit in TIME_UNITS_NS if _plain(name).endswith(f"_{unit}")), None)
    is_text = isinstance(value, str) and not _is_number(value)
    if isinstance(value, datetime) or (is_text and (named is None or "-" in value)):
        return DATETIME
    if named is not None:
        return named
    if isinstance(value, time | timedelta):
        raise TraceError(
            f"column {name!r}: found {cut(str(value))}; must be numbers, or dates with times",
            lines.file,
            line,
        )
    raise TraceError(
        f"time_unit: missing; column {name!r} has numbers such as {cut(str(value))}: are they s, ms, us or ns?",
        lines.file,
        line,
    )


def _plain(name: str) -> str:
    """A name in the spelling of `KNOWN_NAMES`: ``Request tokens``, ``ContextTokens`` and ``arrival-time`` alike."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")


def _without_unit(name: str) -> str:
    stem, _, unit = _plain(name).rpartition("_")
    return stem if unit in TIME_UNITS_NS else ""


def _listed(row: Row) -> str:
    return ", ".join(cut(repr(name)) for name in list(row)[:12])


# ---------------------------------------------------------------- values


def _time_ns(name: str, value: Any, unit: str) -> int:
    """A point in time, in whole nanoseconds since any fixed one.

    Raises:
        BadLine: it is missing, or no time.
    """
    if value is None:
        raise BadLine(f"column {name!r}: the value is missing; must be a time")
    if unit == DATETIME:
        return _datetime_ns(name, value)
    try:
        ns = int(Decimal(str(value)) * TIME_UNITS_NS[unit])
        if not isinstance(value, bool) and abs(ns) < _MAX_NS:
            return ns
    except (InvalidOperation, ValueError, OverflowError):
        pass
    raise BadLine(f"column {name!r}: found {cut(repr(value))}; must be a time in {unit}")


def _datetime_ns(name: str, value: Any) -> int:
    """A date and time, with up to nine digits of a second; without a zone it counts as UTC."""
    digits = ""
    try:
        if isinstance(value, str):
            if (parts := _FRACTION.match(value)) is not None:
                value, digits = parts[1] + parts[3], parts[2]
            value = datetime.fromisoformat(value)
        at = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        since = at - datetime(1970, 1, 1, tzinfo=UTC)
        whole_us = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        return whole_us * 1000 + int(digits[:9].ljust(9, "0"))
    except (ValueError, AttributeError, OverflowError):
        raise BadLine(
            f"column {name!r}: found {cut(repr(value))}; must be a date and time like 2024-05-10 08:30:00.25"
        ) from None


def _count(name: str, value: Any, low: int = 0) -> int:
    """A whole number of tokens, or a priority.

    Raises:
        BadLine: it is missing, or none.
    """
    if value is None:
        raise BadLine(f"column {name!r}: the value is missing; must be a whole number")
    try:
        number = Decimal(str(value))
        count = int(number)
        if not isinstance(value, bool) and count == number and low <= count <= MAX_TOKENS:
            return count
    except (InvalidOperation, ValueError, OverflowError):
        pass
    raise BadLine(f"column {name!r}: found {cut(repr(value))}; must be a whole number from {low}")


def _is_number(text: str) -> bool:
    try:
        Decimal(text)
    except InvalidOperation:
        return False
    return True


def _has_columns(sample: Sample) -> bool:
    """Rows with known names for all that is required, and none of the ids of other formats."""
    for row in sample:
        names = {_plain(name) for name in row} | {_without_unit(name) for name in row}
        if "hash_ids" not in row and all(names & set(KNOWN_NAMES[part]) for part in ("arrival", *REQUIRED)):
            return True
    return False


FORMAT = TraceFormat(
    name="table",
    read=_read,
    recognise=_has_columns,
    line="a request, in a table: comma-separated, Parquet or JSON lines",
    arrivals="a column, whose unit is `time_unit`",
    block_tokens=16,
    takes_columns=True,
    with_script=True,
)
