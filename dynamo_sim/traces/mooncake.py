"""The formats ``mooncake`` and ``mooncake-delta``: conversations of turns (`spec 08, 5 and 7`)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dynamo_sim.text import plain_number
from dynamo_sim.traces.conversations import Conversations
from dynamo_sim.traces.fields import (
    I32_MAX,
    U32_MAX,
    brief,
    check_lengths,
    check_record,
    number,
    text,
    whole,
    whole_list,
)
from dynamo_sim.traces.format import ReadOptions, Sample, TraceFormat
from dynamo_sim.traces.lines import BadLine, TraceLines
from dynamo_sim.traces.turn_table import TurnTable

CONTENT_FIELDS = frozenset(
    (
        "request_id",
        "input_length",
        "input_tokens",
        "output_length",
        "output_tokens",
        "hash_ids",
        "output_token_ids",
        "priority",
        "strict_priority",
        "policy_class",
        "timestamp",
        "created_time",
        "delay",
        "delay_ms",
        "session_id",
    )
)


@dataclass(slots=True)
class RowContent:
    """What a row asks for: its ids, its lengths, and the fields that only the router reads."""

    ids: list[int]
    input_tokens: int | None
    output_tokens: int
    planned_output: list[int] | None
    priority: int
    strict_priority: int
    policy_class: str | None

    def store(self, table: TurnTable, input_tokens: int) -> int:
        """Append it to ``table`` with ``input_tokens`` tokens; returns the row number."""
        return table.add(
            table.store_ids(self.ids),
            input_tokens,
            self.output_tokens,
            self.planned_output,
            self.priority,
            self.strict_priority,
            self.policy_class,
        )


def read_content(record: dict[str, Any], line: int) -> RowContent:
    """The fields that `mooncake` and `agentic_mooncake` have in common.

    Raises:
        BadLine: a field is missing, of the wrong type or out of range.
    """
    ids = whole_list(record, "hash_ids")
    input_tokens = whole(record, "input_length", "input_tokens")
    output_tokens = whole(record, "output_length", "output_tokens")
    planned = whole_list(record, "output_token_ids", U32_MAX)
    priority = whole(record, "priority", low=-I32_MAX - 1, high=I32_MAX) or 0
    strict_priority = whole(record, "strict_priority", high=U32_MAX) or 0
    policy_class = text(record, "policy_class")
    if ids is None:
        raise BadLine(f"trace line {line} is missing hash_ids")
    if output_tokens is None:
        raise BadLine(f"trace line {line} is missing output_length")
    if planned is not None and len(planned) != output_tokens:
        raise BadLine(
            f"trace line {line} output_length {output_tokens} does not match "
            f"output_token_ids length {len(planned)}"
        )
    return RowContent(ids, input_tokens, output_tokens, planned, priority, strict_priority, policy_class)


class _Reader:
    """Sessions as far as they have been read."""

    def __init__(self, block_tokens: int) -> None:
        self.table = TurnTable(block_tokens)
        self.names: dict[str, int] = {}
        self.rows: list[list[int]] = []
        self.starts: list[float | None] = []
        self.references: list[float | None] = []
        self.delays = array("d")
        self.lines = array("q")

    def add(self, line: int, record: Any) -> None:
        """Take in one row; where it raises BadLine nothing has changed."""
        check_record(record, CONTENT_FIELDS)
        content = read_content(record, line)
        timestamp = number(record, "timestamp", "created_time")
        delay = number(record, "delay", "delay_ms")
        text(record, "request_id")
        name = text(record, "session_id")
        if name is None:
            name = f"request_{line}"
        session = self.names.get(name)
        turn = 0 if session is None else len(self.rows[session])

        capacity = len(content.ids) * self.table.block_tokens
        length = capacity if content.input_tokens is None else min(content.input_tokens, capacity)
        if session is None:
            if delay:
                raise BadLine(
                    f"trace line {line} sets delay on the first turn of session {brief(name)} "
                    f"(found {plain_number(delay)}; only later turns wait)"
                )
            delay = 0.0
        else:
            delay = self._delay(line, name, session, timestamp, delay)
        if not length:
            raise BadLine(
                f"session {brief(name)} turn {turn} must have a positive input_length "
                f"(found {content.input_tokens if content.input_tokens is not None else 'none'}, "
                f"with {len(content.ids)} hash_ids)"
            )
        check_lengths(length, content.output_tokens)

        row = content.store(self.table, length)
        self.delays.append(delay)
        self.lines.append(line)
        if session is None:
            self.names[name] = len(self.rows)
            self.rows.append([row])
            self.starts.append(timestamp)
            self.references.append(timestamp)
        else:
            self.rows[session].append(row)
            if timestamp is not None:
                self.references[session] = timestamp

    def _delay(
        self, line: int, name: str, session: int, timestamp: float | None, delay: float | None
    ) -> float:
        if delay is None:
            delay = 0.0
            if timestamp is not None:
                reference = self.references[session]
                if reference is None:
                    raise BadLine(
                        f"trace line {line} for session {brief(name)} cannot infer delay without a previous "
                        "timestamp (give the earlier turn a timestamp, or this one a delay)"
                    )
                delay = timestamp - reference
        if not 0.0 <= delay < float("inf"):
            raise BadLine(
                f"trace line {line} has invalid delay {plain_number(delay)} "
                "(the pause after the previous turn: a finite number of ms, 0 or more)"
            )
        return delay


def _read(files: Sequence[TraceLines], options: ReadOptions, is_delta: bool = False) -> Conversations:
    """Read the rows of one file; ``is_delta`` says that a row is only what its turn adds.

    Raises:
        TraceError: a line is wrong (unless bad lines are skipped), or there is no row.
    """
    (lines,) = files
    reader = _Reader(options.given_block_tokens)
    lines.read_with(reader.add)
    if not reader.rows:
        raise lines.nothing_found()
    return Conversations(
        turns=reader.table,
        names=list(reader.names),
        rows=reader.rows,
        starts=reader.starts,
        delays=reader.delays,
        is_delta=is_delta,
        lines=reader.lines,
        file=lines.file,
        skipped=lines.skipped,
    )


def _has_rows(sample: Sample) -> bool:
    return any("hash_ids" in record for record in sample)


def _adds_up(sample: Sample) -> bool:
    """Whether there are later turns, and none begins with the id that its session began with."""
    first_ids: dict[str, Any] = {}
    later = repeating = 0
    for record in sample:
        session, ids = record.get("session_id"), record.get("hash_ids")
        if isinstance(session, str) and isinstance(ids, list | tuple) and ids:
            if session in first_ids:
                later += 1
                repeating += ids[0] == first_ids[session]
            else:
                first_ids[session] = ids[0]
    return later > 0 and not repeating


FORMAT = TraceFormat(
    name="mooncake",
    read=_read,
    recognise=_has_rows,
    line="a request, or a turn of a conversation with its whole prompt",
    arrivals="`timestamp`; later turns follow the end of the one before",
    with_script=True,
)

DELTA_FORMAT = TraceFormat(
    name="mooncake-delta",
    aliases=("mooncake_delta",),
    read=partial(_read, is_delta=True),
    recognise=_adds_up,
    line="a turn with only what it adds",
    arrivals="as `mooncake`",
    is_delta=True,
)
