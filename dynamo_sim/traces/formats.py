"""The table of trace formats, and reading a trace in one of them (`spec 08, 3`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dynamo_sim.errors import ScenarioError
from dynamo_sim.traces import agentic_mooncake, applied_compute, dynamo, mooncake, table
from dynamo_sim.traces.conversations import Conversations, Workflow
from dynamo_sim.traces.format import ReadOptions, TraceFormat
from dynamo_sim.traces.lines import TraceLines

FORMATS: tuple[TraceFormat, ...] = (
    mooncake.FORMAT,
    mooncake.DELTA_FORMAT,
    agentic_mooncake.FORMAT,
    applied_compute.FORMAT,
    dynamo.FORMAT,
    table.FORMAT,
)
"""All formats, in the order in which messages and documents list them. Add a format by adding it here.

A trace is taken for the last one that recognises it: what stands later has more fields of its own.
"""

BY_NAME = {name: known for known in FORMATS for name in (known.name, *known.aliases)}
"""Formats by their names and aliases."""

TraceSource = str | Path | Sequence[Any]
"""A path, a list of paths (formats with `several_files`), or a list of records."""


def format_named(name: str) -> TraceFormat:
    """The format of a name or alias; raises ScenarioError for an unknown one."""
    if name not in BY_NAME:
        known = ["/".join(f"'{one}'" for one in (each.name, *each.aliases)) for each in FORMATS]
        raise ScenarioError(f"trace_format must be {', '.join(known[:-1])}, or {known[-1]}, got '{name}'")
    return BY_NAME[name]


def one_by_one(source: TraceSource) -> list[str | Path | Sequence[Any]]:
    """The paths of a list of paths; anything else is one source."""
    if not isinstance(source, str | Path) and source and all(isinstance(item, str | Path) for item in source):
        return list(source)
    return [source]


def read_trace(
    source: TraceSource,
    trace_format: str = "mooncake",
    trace_block_size: int | None = None,
    *,
    shared_prefix_ratio: float = 0.0,
    num_prefix_groups: int = 0,
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
    skip_bad_lines: bool = False,
) -> Conversations | Workflow:
    """Read a trace as it stands; its times are those of the file (except workflows, which begin at 0).

    Args:
        source: a path, several paths, or records.
        trace_format: the name of one of `FORMATS`, or an alias.
        trace_block_size: tokens an id; None for the format's own size, or for what the records say.
        shared_prefix_ratio, num_prefix_groups: for formats with `takes_shared_prefix` only.
        columns, time_unit: for formats with `takes_columns` only.
        skip_bad_lines: leave bad lines out and list them instead of failing at the first.

    Raises:
        ScenarioError: the format, the block size or the ratio is impossible.
        TraceError: the file cannot be read, is empty or has a bad line.
    """
    known = format_named(trace_format)
    if trace_block_size is not None and trace_block_size < 1:
        raise ScenarioError(f"trace_block_size must be greater than 0, got {trace_block_size}")
    files = [TraceLines(one, skip_bad_lines) for one in one_by_one(source)]
    if len(files) != 1 and not known.several_files:
        several = ", ".join(each.name for each in FORMATS if each.several_files)
        raise ScenarioError(
            f"trace format {known.name} takes one file, got {len(files)} (several: {several})"
        )
    block_tokens = known.block_tokens if trace_block_size is None else trace_block_size
    return known.read(
        files, ReadOptions(block_tokens, shared_prefix_ratio, num_prefix_groups, columns, time_unit)
    )
