"""The format ``dynamo``: requests recorded by a Dynamo frontend (`spec 08, 8`)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.prompt_ids import half_up
from dynamo_sim.traces.conversations import Conversations, Workflow
from dynamo_sim.traces.dynamo_agents import Recorded, ToolLink, link_agents
from dynamo_sim.traces.fields import (
    as_number,
    brief,
    check_lengths,
    found,
    obj,
    require,
    text,
    whole,
    whole_list,
)
from dynamo_sim.traces.format import ReadOptions, Sample, TraceFormat
from dynamo_sim.traces.lines import BadLine, SkippedLine, TraceLines
from dynamo_sim.traces.tool_events import check_tool_event
from dynamo_sim.traces.turn_table import TurnTable

SCHEMA = "dynamo.request.trace.v1"
TOOL_EVENTS = ("tool_start", "tool_end", "tool_error")


@dataclass(slots=True)
class _Event:
    kind: str
    at_ms: int
    session: str | None
    parent: str | None
    request: dict[str, Any] | None
    tool: ToolLink | None


def _read_event(record: dict[str, Any], line: int) -> _Event:
    require(record, ("schema", "event_type", "event_time_unix_ms"))
    if record["schema"] != SCHEMA:
        raise BadLine(
            f"failed to parse line {line}: schema must be {SCHEMA}, found {found(record['schema'])}"
        )
    kind = text(record, "event_type") or ""
    at_ms = whole(record, "event_time_unix_ms") or 0
    session = parent = None
    context = obj(record, "agent_context")
    if context is not None:
        require(context, ("session_id",))
        session, parent = text(context, "session_id"), text(context, "parent_session_id")
    if kind != "request_end" and kind not in TOOL_EVENTS:
        raise BadLine(
            f"request trace schema only supports request_end/tool_* events, got {brief(kind)} "
            f"(allowed: request_end, {', '.join(TOOL_EVENTS)})"
        )
    tool = obj(record, "tool")
    return _Event(
        kind, at_ms, session, parent, obj(record, "request"),
        None if tool is None else _read_tool(tool, session, line),
    )  # fmt: skip


def _read_tool(tool: dict[str, Any], session: str | None, line: int) -> ToolLink | None:
    check_tool_event(tool, ended=False)
    claude = obj(tool, "claude")
    if claude is None:
        return None
    require(claude, ("source_request_id", "execution_mode"))
    return ToolLink(
        tool=text(tool, "tool_call_id") or "",
        session=session or "",
        source=text(claude, "source_request_id") or "",
        consumer=text(claude, "consumer_request_id"),
        child=text(claude, "child_session_id"),
        mode=text(claude, "execution_mode") or "",
        line=line,
    )


def _read_request(event: _Event, line: int) -> Recorded:
    request = event.request
    if request is None:
        raise BadLine(f"invalid request_end at line {line}: request is missing")
    require(request, ("request_id",))
    name = text(request, "request_id") or ""
    start = whole(request, "request_received_ms")
    output = whole(request, "output_tokens")
    total = request.get("total_time_ms")
    total_ms = None if total is None else as_number("total_time_ms", total)
    replay = obj(request, "replay")
    for field, value in (("request_received_ms", start), ("output_tokens", output), ("replay", replay)):
        if value is None:
            raise BadLine(f"invalid request_end at line {line}: request.{field} is missing")
    assert start is not None and output is not None and replay is not None
    require(replay, ("trace_block_size", "input_length"))
    block = whole(replay, "trace_block_size") or 0
    length = whole(replay, "input_length") or 0
    hashes = whole_list(replay, "input_sequence_hashes")
    if hashes is None:
        raise BadLine("failed to parse as JSON: missing field input_sequence_hashes")
    if block < 1:
        raise BadLine(f"invalid request_end at line {line}: replay.trace_block_size must be greater than 0")
    if len(hashes) != -(-length // block):
        raise BadLine(
            f"invalid request_end at line {line}: {len(hashes)} input_sequence_hashes, but input_length "
            f"{length} needs {-(-length // block)} of trace_block_size {block}"
        )
    check_lengths(length, output)
    duration_ms = event.at_ms - start if total_ms is None else half_up(max(0.0, total_ms))
    end = start + max(0, duration_ms)
    return Recorded(name, start, end, length, output, hashes, block, event.session, event.parent, line)


class _Reader:
    """Requests and tool links of one or more files, as far as they have been read.

    Attributes:
        file: the file whose lines are being read.
    """

    def __init__(self) -> None:
        self.file: str | None = None
        self.requests: list[Recorded] = []
        self.links: list[ToolLink] = []
        self.seen: set[str] = set()
        self.block_tokens: int | None = None

    def add(self, line: int, value: Any) -> None:
        """Take in one event; where it raises BadLine nothing has changed."""
        record = value
        if isinstance(value, dict) and "event" in value:
            record = value["event"]
        if not isinstance(record, dict):
            return
        event = _read_event(record, line)
        if event.kind != "request_end":
            # A link counts once its tool has ended, and only inside of a session.
            if event.tool is not None and event.session is not None and event.kind != "tool_start":
                event.tool.file = self.file
                self.links.append(event.tool)
            return
        request = _read_request(event, line)
        request.file = self.file
        if request.request_id in self.seen:
            raise BadLine(f"duplicate request_id {brief(request.request_id)} at line {line}")
        if self.block_tokens not in (None, request.block_tokens):
            raise BadLine(
                "mixed replay trace_block_size values are not supported: "
                f"{self.block_tokens} and {request.block_tokens}"
            )
        self.block_tokens = request.block_tokens
        self.seen.add(request.request_id)
        self.requests.append(request)


def _read(files: Sequence[TraceLines], options: ReadOptions) -> Conversations | Workflow:
    """Read recorded requests of one or more files, in the order given.

    Requests without agents become single-turn sessions, requests with agents a workflow. The tokens an id of the
    scenario, if it says any, must be those of the records.

    Raises:
        ScenarioError: the block size differs from the records'.
        TraceError: a line is wrong (unless bad lines are skipped), there is no request, some requests have an
            `agent_context` and others do not, or the dependencies of agents are impossible.
    """
    reader = _Reader()
    for lines in files:
        reader.file = lines.file
        lines.read_with(reader.add)
    skipped = [skip for lines in files for skip in lines.skipped]
    name = files[0].file
    if not reader.requests:
        raise TraceError("no request_end records with replay fields found", name)
    embedded = reader.block_tokens or 0
    if options.block_tokens not in (None, embedded):
        raise ScenarioError(
            f"trace_block_size {options.block_tokens} does not match embedded Dynamo request trace block size "
            f"{embedded}"
        )
    requests = sorted(reader.requests, key=Recorded.order)
    with_agents = [request.session is not None for request in requests]
    if any(with_agents) and not all(with_agents):
        odd = requests[with_agents.index(not with_agents[0])]
        raise TraceError(
            "Dynamo request trace cannot mix requests with and without agent_context", odd.file, odd.line
        )
    table = _content(requests, embedded)
    earliest = requests[0].start_ms
    starts = [float(request.start_ms - earliest) for request in requests]
    if with_agents[0]:
        waits_for, wait_ms = link_agents(requests, reader.links)
        return Workflow(
            turns=table,
            sessions=[request.session or "" for request in requests],
            waits_for=waits_for,
            wait_ms=wait_ms,
            starts=[None if waits else start for waits, start in zip(waits_for, starts, strict=True)],
            file=name,
            skipped=skipped,
        )
    return _single_turns(requests, table, starts, name, skipped)


def _content(requests: Iterable[Recorded], block_tokens: int) -> TurnTable:
    """Rename the hashes 0, 1, 2, ... by first use; they are prefix hashes: equal ones are equal prefixes."""
    table = TurnTable(block_tokens)
    names: dict[int, int] = {}
    for request in requests:
        ids = [names.setdefault(value, len(names)) for value in request.hashes]
        table.add(table.store_ids(ids), request.input_tokens, request.output_tokens)
    return table


def _single_turns(
    requests: Sequence[Recorded],
    table: TurnTable,
    starts: Sequence[float],
    file: str | None,
    skipped: list[SkippedLine],
) -> Conversations:
    for position, request in enumerate(requests, start=1):
        if not request.input_tokens:
            raise TraceError(
                f"session request_{position} turn 0 must have a positive input_length",
                request.file,
                request.line,
            )
    return Conversations(
        turns=table,
        names=[f"request_{position}" for position in range(1, len(requests) + 1)],
        rows=[[row] for row in range(len(requests))],
        starts=starts,
        delays=array("d", bytes(8 * len(requests))),
        lines=[request.line for request in requests],
        file=file,
        skipped=skipped,
    )


def _has_events(sample: Sample) -> bool:
    return any("schema" in record or "event" in record for record in sample)


FORMAT = TraceFormat(
    name="dynamo",
    read=_read,
    recognise=_has_events,
    line="an event recorded by a Dynamo frontend",
    arrivals="recorded; with agents, the last end among what a request waited for",
    block_tokens=None,
    several_files=True,
    is_workflow=None,
    workflow_subject="agentic Dynamo request traces are",
)
