"""The format ``agentic_mooncake``: requests that wait for other requests (`spec 08, 8`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynamo_sim.text import is_text, plain_number
from dynamo_sim.traces.conversations import Workflow
from dynamo_sim.traces.cycles import cycles
from dynamo_sim.traces.fields import (
    brief,
    check_lengths,
    check_record,
    number,
    text,
    wrong,
)
from dynamo_sim.traces.format import ReadOptions, Sample, TraceFormat
from dynamo_sim.traces.lines import BadLine, TraceLines
from dynamo_sim.traces.mooncake import CONTENT_FIELDS, RowContent, read_content
from dynamo_sim.traces.tool_events import check_tool_event
from dynamo_sim.traces.turn_table import TurnTable

KNOWN_FIELDS = CONTENT_FIELDS | {
    "wait_for", "tool_wait_ms", "request_kind", "branches", "prefix_reset", "tool_events"
}  # fmt: skip


@dataclass(slots=True)
class _Row:
    line: int
    request_id: str
    session: str
    content: RowContent
    input_tokens: int
    wait_for: list[str]
    wait_ms: float
    timestamp: float | None


def _read_row(line: int, record: Any, block_tokens: int, seen: set[str]) -> _Row:
    check_record(record, KNOWN_FIELDS)
    request_id = text(record, "request_id")
    if request_id is None:
        raise BadLine(f"failed to parse line {line} as agentic Mooncake JSON: missing field request_id")
    content = read_content(record, line)
    timestamp = number(record, "timestamp", "created_time")
    delay = number(record, "delay", "delay_ms") or 0.0
    tool_wait = number(record, "tool_wait_ms") or 0.0
    session = text(record, "session_id")
    wait_for = _names(record, "wait_for")
    _check_fields_without_effect(record)
    if not request_id.strip():
        raise BadLine(f"trace line {line} has empty request_id")
    if request_id in seen:
        raise BadLine(f"trace line {line} duplicates request_id {brief(request_id)}")
    capacity = len(content.ids) * block_tokens
    length = capacity if content.input_tokens is None else content.input_tokens
    if length > capacity:
        raise BadLine(
            f"trace line {line} has input_length {length} but only {capacity} tokens can be synthesized "
            f"from {len(content.ids)} hash_ids at trace_block_size {block_tokens}"
        )
    check_lengths(length, content.output_tokens)
    if timestamp is not None and timestamp < 0.0:
        raise BadLine(f"trace line {line} has invalid timestamp {plain_number(timestamp)} (ms, 0 or more)")
    wait_ms = delay + tool_wait
    if not 0.0 <= wait_ms < float("inf"):
        raise BadLine(
            f"trace line {line} has invalid dependency delay {plain_number(wait_ms)} "
            "(delay + tool_wait_ms: a finite number of ms, 0 or more)"
        )
    return _Row(
        line, request_id, f"request_{line}" if session is None else session, content, length, wait_for,
        wait_ms, timestamp,
    )  # fmt: skip


def _names(record: dict[str, Any], field: str) -> list[str]:
    names = record.get(field, [])
    if not isinstance(names, list | tuple) or not all(map(is_text, names)):
        raise wrong(field, "a list of request ids", names)
    return list(names)


def _check_fields_without_effect(record: dict[str, Any]) -> None:
    text(record, "request_kind")
    _names(record, "branches")
    reset = record.get("prefix_reset")
    if reset is not None and not isinstance(reset, bool):
        raise wrong("prefix_reset", "true or false", reset)
    events = record.get("tool_events", [])
    if not isinstance(events, list | tuple) or not all(isinstance(event, dict) for event in events):
        raise wrong("tool_events", "a list of objects", events)
    for event in events:
        check_tool_event(event, ended=True)


class _Reader:
    """Rows as far as they have been read."""

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.rows: list[_Row] = []
        self.seen: set[str] = set()

    def add(self, line: int, record: Any) -> None:
        """Take in one row; where it raises BadLine nothing has changed."""
        row = _read_row(line, record, self.block_tokens, self.seen)
        self.rows.append(row)
        self.seen.add(row.request_id)


def _read(files: Sequence[TraceLines], options: ReadOptions) -> Workflow:
    """Read a workflow from one file.

    Raises:
        TraceError: a line is wrong, waits for an unknown request, or is part of a cycle; or there is no row.
            Where bad lines are skipped, lines that wait for a skipped one are skipped too.
    """
    (lines,) = files
    reader = _Reader(options.given_block_tokens)
    lines.read_with(reader.add)
    rows = _sound(reader.rows, lines)
    if not rows:
        raise lines.nothing_found()

    table = TurnTable(reader.block_tokens)
    number_of = {row.request_id: position for position, row in enumerate(rows)}
    for row in rows:
        row.content.store(table, row.input_tokens)
    first = min((row.timestamp for row in rows if row.timestamp is not None), default=0.0)
    return Workflow(
        turns=table,
        sessions=[row.session for row in rows],
        waits_for=[tuple(dict.fromkeys(number_of[name] for name in row.wait_for)) for row in rows],
        wait_ms=[row.wait_ms for row in rows],
        starts=[None if row.timestamp is None else row.timestamp - first for row in rows],
        file=lines.file,
        skipped=lines.skipped,
    )


def _sound(rows: list[_Row], lines: TraceLines) -> list[_Row]:
    """The rows whose dependencies exist and end; refuses the others, and those that wait for a refused one."""
    number_of = {row.request_id: position for position, row in enumerate(rows)}
    followers: dict[str, list[int]] = {}
    for position, row in enumerate(rows):
        for name in row.wait_for:
            followers.setdefault(name, []).append(position)
    gone: set[int] = set()

    def drop(positions: Iterable[int]) -> None:
        for position in positions:
            gone.add(position)
            number_of.pop(rows[position].request_id, None)

    def drop_impossible(positions: Iterable[int]) -> None:
        while positions:
            found = []
            for position in positions:
                reason = None if position in gone else _impossible(rows[position], number_of)
                if reason is not None:
                    found.append(position)
                    lines.refuse(rows[position].line, reason)
            drop(found)
            positions = sorted({each for one in found for each in followers.get(rows[one].request_id, ())})

    drop_impossible(range(len(rows)))
    waits_for = [
        [number_of.get(name, position) for name in row.wait_for] for position, row in enumerate(rows)
    ]
    for found in cycles(waits_for, gone):
        lines.refuse(rows[found].line, f"cycle detected at request {brief(rows[found].request_id)}")
        drop([found])
        drop_impossible(followers.get(rows[found].request_id, ()))
    return [row for position, row in enumerate(rows) if position not in gone]


def _impossible(row: _Row, number_of: Mapping[str, int]) -> str | None:
    """What is wrong with the names a row waits for, or None."""
    for name in row.wait_for:
        if name == row.request_id:
            return f"request {brief(name)} cannot wait for itself (wait_for names request_ids of this trace)"
        if name not in number_of:
            return (
                f"request {brief(row.request_id)} waits for unknown request_id {brief(name)} "
                "(wait_for names request_ids of this trace)"
            )
    return None


def _waits(sample: Sample) -> bool:
    return any("wait_for" in record or "tool_wait_ms" in record for record in sample)


FORMAT = TraceFormat(
    name="agentic_mooncake",
    aliases=("agentic-mooncake",),
    read=_read,
    recognise=_waits,
    line="a request that may wait for others",
    arrivals="`timestamp`, or the last end among `wait_for`",
    is_workflow=True,
    workflow_subject="agentic_mooncake trace format is",
)
