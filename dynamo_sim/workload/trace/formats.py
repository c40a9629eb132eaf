"""The trace formats by name, and reading a trace in one of them (`spec 08, 3`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dynamo_sim.errors import ScenarioError
from dynamo_sim.workload.conversations import Conversations, Workflow
from dynamo_sim.workload.trace.agentic import read_agentic_mooncake
from dynamo_sim.workload.trace.dynamo import read_dynamo
from dynamo_sim.workload.trace.lines import TraceLines
from dynamo_sim.workload.trace.mooncake import read_mooncake
from dynamo_sim.workload.trace.tool_loops import read_applied_compute

FORMATS = ("mooncake", "mooncake-delta", "agentic_mooncake", "applied_compute_agentic", "dynamo")
ALIASES = {"mooncake_delta": "mooncake-delta", "agentic-mooncake": "agentic_mooncake"}
DEFAULT_BLOCK_TOKENS = 512

TraceSource = str | Path | Sequence[Any]
"""A path, a list of paths (`dynamo` only), or a list of records."""


def canonical_format(name: str) -> str:
    """The one spelling of a format's name; raises ScenarioError for an unknown one."""
    name = ALIASES.get(name, name)
    if name not in FORMATS:
        raise ScenarioError(
            "trace_format must be 'mooncake', 'mooncake-delta', 'agentic_mooncake'/'agentic-mooncake', "
            f"'applied_compute_agentic', or 'dynamo', got '{name}'"
        )
    return name


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
    skip_bad_lines: bool = False,
) -> Conversations | Workflow:
    """Read a trace as it stands; its times are those of the file (except workflows, which begin at 0).

    Args:
        source: a path, several paths (`dynamo` only), or records.
        trace_format: one of `FORMATS`, or an alias.
        trace_block_size: tokens an id; None means 512, or what the records say (`dynamo`).
        shared_prefix_ratio, num_prefix_groups: for `applied_compute_agentic` only.
        skip_bad_lines: leave bad lines out and list them instead of failing at the first.

    Raises:
        ScenarioError: the format, the block size or the ratio is impossible.
        TraceError: the file cannot be read, is empty or has a bad line.
    """
    trace_format = canonical_format(trace_format)
    if trace_block_size is not None and trace_block_size < 1:
        raise ScenarioError(f"trace_block_size must be greater than 0, got {trace_block_size}")
    files = [TraceLines(one, skip_bad_lines) for one in one_by_one(source)]
    if trace_format == "dynamo":
        return read_dynamo(files, trace_block_size)
    if len(files) != 1:
        raise ScenarioError(f"trace format {trace_format} takes one file, got {len(files)} (several: dynamo)")
    lines = files[0]
    block_tokens = DEFAULT_BLOCK_TOKENS if trace_block_size is None else trace_block_size
    if trace_format == "applied_compute_agentic":
        return read_applied_compute(lines, block_tokens, shared_prefix_ratio, num_prefix_groups)
    if trace_format == "agentic_mooncake":
        return read_agentic_mooncake(lines, block_tokens)
    return read_mooncake(lines, block_tokens, delta=trace_format == "mooncake-delta")
