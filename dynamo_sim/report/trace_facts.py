"""What is in a trace: rows, times, lengths, conversations, and how much of the prompts repeats."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.errors import TraceError
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.limits import MAX_TOKENS
from dynamo_sim.traces.conversations import Conversations, Workflow
from dynamo_sim.traces.detect import detect_format
from dynamo_sim.traces.formats import TraceSource, format_named, read_trace
from dynamo_sim.traces.lines import SkippedLine
from dynamo_sim.workload.request import Request
from dynamo_sim.workload.transcript import Transcript
from dynamo_sim.workload.turns import TraceTurns

PEAK_WINDOW_MS = 10_000.0
MIN_SPAN_MS = 1e-6


@dataclass(slots=True)
class Reuse:
    """How much of the prompts was there before (unlimited cache, rows in file order).

    Attributes:
        block_tokens: size of a cache block.
        blocks, seen_blocks: full blocks of all prompts, and those whose whole prefix had been there before.
        ids, seen_ids: the same over the ids of the rows as they stand, the last and maybe partial one too.
        prompt_tokens: tokens of all prompts.
    """

    block_tokens: int
    blocks: int = 0
    seen_blocks: int = 0
    ids: int = 0
    seen_ids: int = 0
    prompt_tokens: int = 0

    @property
    def block_share(self) -> float:
        """Share of the full blocks that a cache could serve."""
        return self.seen_blocks / self.blocks if self.blocks else 0.0

    @property
    def id_share(self) -> float:
        """Share of the ids found as a leading run."""
        return self.seen_ids / self.ids if self.ids else 0.0

    @property
    def token_share(self) -> float:
        """Share of the prompt tokens that a cache of full blocks could serve."""
        return self.seen_blocks * self.block_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


@dataclass(slots=True)
class TraceFacts:
    """Facts about a trace.

    Attributes:
        file: its path, or None for records.
        format: its format.
        block_tokens: tokens an id.
        arrivals_ms: arrivals the trace itself knows, sorted, the first one at 0: those of first turns, or of
            requests that wait for nothing. Empty where it has no times.
        input_tokens, output_tokens: lengths, a row each; prompts of increments are the whole conversation.
        turns: number of turns of each session.
        is_workflow: whether requests wait for named other requests.
        reuse: repetition among the prompts.
        skipped: bad lines that were left out.
    """

    file: str | None
    format: str
    block_tokens: int
    arrivals_ms: NDArray[np.float64]
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    turns: NDArray[np.int64]
    is_workflow: bool
    reuse: Reuse
    skipped: list[SkippedLine] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Number of requests."""
        return len(self.input_tokens)

    @property
    def says_what_is_shared(self) -> bool:
        """Whether it says which prompts begin alike; all are unlike each other otherwise."""
        return self.block_tokens < MAX_TOKENS

    @property
    def span_ms(self) -> float:
        """From the first known arrival to the last; 0 where that is no time to speak of."""
        span_ms = float(self.arrivals_ms[-1]) if len(self.arrivals_ms) else 0.0
        return span_ms if span_ms >= MIN_SPAN_MS else 0.0

    @property
    def mean_rate_rps(self) -> float | None:
        """Known arrivals a second over the span, or None where there is no span."""
        return len(self.arrivals_ms) / self.span_ms * 1000.0 if self.span_ms else None

    @property
    def peak_rate_rps(self) -> float | None:
        """Known arrivals a second in the fullest of the windows of 10 s that follow one another from 0."""
        if not self.span_ms:
            return None
        arrivals = np.unique(self.arrivals_ms // PEAK_WINDOW_MS, return_counts=True)[1]
        return float(arrivals.max()) / PEAK_WINDOW_MS * 1000.0


def inspect_trace(
    source: TraceSource,
    trace_format: str | None = None,
    trace_block_size: int | None = None,
    engine_block_size: int | None = None,
    skip_bad_lines: bool = False,
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
) -> TraceFacts:
    """Read a trace and take its measure.

    Args:
        source: path, paths (`dynamo`) or records.
        trace_format: its format; None to recognise it (`detect_format`).
        trace_block_size: tokens an id; None for 512, or what the records say.
        engine_block_size: tokens a cache block; None for the same.
        skip_bad_lines: count bad lines instead of failing at the first.
        columns, time_unit: of a table.

    Raises:
        ScenarioError, TraceError: as `read_trace`.
    """
    known = detect_format(source) if trace_format is None else format_named(trace_format)
    content = read_trace(
        source,
        known.name,
        trace_block_size,
        columns=columns,
        time_unit=time_unit,
        skip_bad_lines=skip_bad_lines,
    )
    table = content.turns
    interner = PrefixInterner(engine_block_size or table.block_tokens)
    ids_interner = PrefixInterner(1)
    reuse = Reuse(interner.block_size)
    last_name = last_id_name = 0
    inputs, outputs = [], []
    for request in _requests(content):
        inputs.append(request.input_tokens)
        outputs.append(request.output_tokens)
        names = interner.names_of(request)
        blocks = request.input_tokens // interner.block_size
        reuse.blocks += blocks
        reuse.seen_blocks += _leading(names, last_name, min(blocks, len(names)))
        last_name = max(last_name, names[-1] if names else 0)
        id_names = ids_interner.blocks([(value, 1) for value in table.ids(request.index)])
        reuse.ids += len(id_names)
        reuse.seen_ids += _leading(id_names, last_id_name, len(id_names))
        last_id_name = max(last_id_name, id_names[-1] if id_names else 0)
    reuse.prompt_tokens = sum(inputs)
    return TraceFacts(
        file=content.file,
        format=known.name,
        block_tokens=table.block_tokens,
        arrivals_ms=_arrivals(content),
        input_tokens=np.array(inputs, dtype=np.int64),
        output_tokens=np.array(outputs, dtype=np.int64),
        turns=np.array(content.session_sizes(), dtype=np.int64),
        is_workflow=content.is_workflow,
        reuse=reuse,
        skipped=content.skipped,
    )


def _leading(names: Sequence[int], last_name: int, count: int) -> int:
    """How many of the first ``count`` names are not above ``last_name``: behind a new block all are new."""
    return bisect_left(names, True, hi=count, key=lambda name: name > last_name)


def _requests(content: Conversations | Workflow) -> Iterator[Request]:
    """All requests in file order, with the prompts they would have if every turn completed."""
    turns = TraceTurns(content.turns)
    if isinstance(content, Workflow) or not content.is_delta:
        for row in range(len(turns)):
            yield turns.request(row, 0.0)
        return
    session_of = {row: session for session, rows in enumerate(content.rows) for row in rows}
    transcripts: dict[int, Transcript] = {}
    for row, session in sorted(session_of.items()):
        request = turns.request(row, 0.0)
        is_last = row == content.rows[session][-1]
        transcript = transcripts.setdefault(session, Transcript())
        transcript.asked(request, is_last)
        transcript.answered(request, request.output_tokens)
        yield request
        if is_last:
            del transcripts[session]


def _arrivals(content: Conversations | Workflow) -> NDArray[np.float64]:
    arrivals = np.sort(np.array(content.known_starts(), dtype=np.float64))
    if not len(arrivals):
        return arrivals
    if not isfinite(float(arrivals[-1]) - float(arrivals[0])):
        raise TraceError("from its first arrival to its last is longer than a number can say", content.file)
    return arrivals - arrivals[0]
