"""The format ``applied_compute_agentic``: sessions that alternate answers and tool calls (`spec 08, 8`)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dynamo_sim.limits import MAX_BLOCKS
from dynamo_sim.prompt_ids import check_shared_ratio, shared_blocks
from dynamo_sim.text import plain_number
from dynamo_sim.traces.conversations import Conversations
from dynamo_sim.traces.fields import (
    as_number,
    check_lengths,
    check_record,
    require,
    whole,
    whole_list,
    wrong,
)
from dynamo_sim.traces.format import ReadOptions, Sample, TraceFormat
from dynamo_sim.traces.lines import BadLine, TraceLines
from dynamo_sim.traces.turn_table import TurnTable

LISTS = ("assistant_response_length", "tool_call_output_length", "tool_call_latency")
FIELDS = ("num_turns", "input_prompt_length", *LISTS, "final_assistant_response_length")
KNOWN_FIELDS = frozenset(FIELDS)


@dataclass(slots=True)
class _Session:
    prompt_tokens: int
    responses: list[int]
    tool_outputs: list[int]
    latencies_s: list[float]


def _read_row(line: int, record: Any, block_tokens: int) -> _Session:
    check_record(record, KNOWN_FIELDS)
    require(record, FIELDS)
    turns = whole(record, "num_turns") or 0
    prompt = whole(record, "input_prompt_length") or 0
    final = whole(record, "final_assistant_response_length") or 0
    responses = whole_list(record, "assistant_response_length") or []
    outputs = whole_list(record, "tool_call_output_length") or []
    latencies = record["tool_call_latency"]
    if not isinstance(latencies, list | tuple):
        raise wrong("tool_call_latency", "a list of numbers (seconds)", latencies)
    latencies = [as_number(f"tool_call_latency[{i}]", value) for i, value in enumerate(latencies)]
    for name, values in zip(LISTS, (responses, outputs, latencies), strict=True):
        if len(values) != turns:
            raise BadLine(
                f"trace line {line} field {name} length {len(values)} does not match num_turns {turns}"
            )
    if prompt < 1:
        raise BadLine(f"trace line {line} input_prompt_length must be positive")
    for i, value in enumerate(latencies):
        if value < 0.0:
            raise BadLine(
                f"trace line {line} tool_call_latency[{i}] must be a finite non-negative number "
                f"(seconds), found {plain_number(value)}"
            )
    longest = prompt + sum(responses) + sum(outputs)
    check_lengths(longest, max([*responses, final]))
    if longest > MAX_BLOCKS * block_tokens:
        raise BadLine(
            f"the longest prompt of trace line {line} has {longest} tokens, more than {MAX_BLOCKS} blocks of "
            f"trace_block_size {block_tokens}"
        )
    return _Session(prompt, [*responses, final], outputs, latencies)


class _Reader:
    """Sessions as far as they have been read; each line is one, whose prompt grows by answer and tool output.

    Shared ids are the numbers 0, 1, 2, ... and the others come from one counter that starts at 1, so that the
    two can coincide; the reference has it so, and the group of a line is lost there (`spec 08, 8`).

    Args:
        block_tokens: tokens an id.
        shared_ratio: share of the first prompt's blocks that is shared, 0 to 1.
        groups: only whether it is above 0 matters.
    """

    def __init__(self, block_tokens: int, shared_ratio: float, groups: int) -> None:
        self.block_tokens = block_tokens
        self.shared_ratio = shared_ratio
        self.groups = groups
        self.table = TurnTable(block_tokens)
        self.names: list[str] = []
        self.rows: list[list[int]] = []
        self.delays = array("d")
        self.lines = array("q")
        self.next_id = 1

    def add(self, line: int, record: Any) -> None:
        """Take in one session; where it raises BadLine nothing has changed."""
        session = _read_row(line, record, self.block_tokens)
        tokens = session.prompt_tokens
        stored = shared_blocks(self._blocks(tokens), self.shared_ratio, self.groups)
        first = self.table.store_ids(range(stored))
        rows: list[int] = []
        for turn, response in enumerate(session.responses):
            if turn:
                tokens += session.responses[turn - 1] + session.tool_outputs[turn - 1]
            more = max(0, self._blocks(tokens) - stored)
            self.table.store_ids(range(self.next_id, self.next_id + more))
            self.next_id += more
            stored += more
            rows.append(self.table.add(first, tokens, response))
            self.delays.append(session.latencies_s[turn - 1] * 1000.0 if turn else 0.0)
            self.lines.append(line)
        self.names.append(f"applied_compute_agentic_session_{line}")
        self.rows.append(rows)

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.block_tokens)


def _read(files: Sequence[TraceLines], options: ReadOptions) -> Conversations:
    """Read the sessions of one file.

    Raises:
        ScenarioError: the share of the prompts that is the same is out of range.
        TraceError: a line is wrong (unless bad lines are skipped), or there is no row.
    """
    (lines,) = files
    check_shared_ratio(options.shared_prefix_ratio)
    reader = _Reader(options.given_block_tokens, options.shared_prefix_ratio, options.num_prefix_groups)
    lines.read_with(reader.add)
    if not reader.rows:
        raise lines.nothing_found()
    return Conversations(
        turns=reader.table,
        names=reader.names,
        rows=reader.rows,
        starts=[None] * len(reader.rows),
        delays=reader.delays,
        lines=reader.lines,
        file=lines.file,
        skipped=lines.skipped,
    )


def _has_turns(sample: Sample) -> bool:
    return any("num_turns" in record for record in sample)


FORMAT = TraceFormat(
    name="applied_compute_agentic",
    read=_read,
    recognise=_has_turns,
    line="a conversation of answers and tool calls",
    arrivals="none: needs `limits.concurrency`",
    has_arrivals=False,
    takes_shared_prefix=True,
)
