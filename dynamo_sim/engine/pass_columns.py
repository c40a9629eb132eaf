"""Forward passes as columns: steps of any length, spread out to one element a pass."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.engine.pass_stats import PassStats
from dynamo_sim.engine.step import Step

Ints = NDArray[np.int64]

Columns = dict[str, NDArray[Any]]
"""Arrays of one length, by name."""

COLUMNS = {
    "prefill_requests": "num_prefill_requests",
    "prefill_tokens": "sum_prefill_tokens",
    "prefill_kv_tokens": "sum_prefill_kv_tokens",
    "decode_requests": "num_decode_requests",
    "decode_kv_tokens": "sum_decode_kv_tokens",
}
"""Columns that are read off `PassStats` as they are, and its names for them."""

FIELDS = (
    *COLUMNS.values(),
    "decode_kv_growth",
    "num_queued_prefill",
    "num_queued_decode",
    "first_used_tokens",
    "block_tokens",
)
"""Numbers of `PassStats` that are the same for all passes of a step."""


CHUNK_STEPS = 2_000
"""Steps that are turned into columns together: few enough to be in the processor's cache while they are."""


def pass_columns(chunks: Sequence[Columns], steps: Sequence[tuple[int, Step]]) -> Columns:
    """All passes in the order of their steps; the passes of a stretch follow one another.

    Args:
        chunks: `columns_of` the steps before ``steps``.
        steps: worker id and step.

    Returns:
        Equally long arrays: the columns of `columns_of`.
    """
    parts = [*chunks, columns_of(steps)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def columns_of(steps: Sequence[tuple[int, Step]]) -> Columns:
    """The passes of a few steps.

    Returns:
        Equally long arrays, of floats for times and of whole numbers for all else: ``worker_id``;
        ``start_ms`` and ``end_ms``; the `COLUMNS` (requests and tokens that take part, ``prefill_kv_tokens``
        being prompt tokens that were there before); ``output_tokens`` emitted; ``queued_requests`` that wait
        after the pass, new and preempted; ``used_kv_tokens`` held during it.
    """
    parts = _parts(steps)
    count = len(parts)
    lengths = np.fromiter((len(ends_ms) for _, _, ends_ms, _, _ in parts), np.int64, count)
    total = int(lengths.sum())
    firsts = np.cumsum(lengths) - lengths
    within = np.arange(total) - np.repeat(firsts, lengths)
    stats = [part[4] for part in parts]
    # One call reads all fields of a step: this loop is most of the time that saving takes.
    numbers = chain.from_iterable(map(attrgetter(*FIELDS), stats))
    table = np.fromiter(numbers, np.int64, count * len(FIELDS)).reshape(-1, len(FIELDS))
    of_step = dict(zip(FIELDS, table.T, strict=True))

    def spread(values: Ints) -> Ints:
        return np.repeat(values, lengths)

    ends = np.fromiter(chain.from_iterable(ends_ms for _, _, ends_ms, _, _ in parts), np.float64, total)
    starts = np.empty(total)
    starts[1:] = ends[:-1]
    starts[firsts] = np.fromiter((start_ms for _, start_ms, _, _, _ in parts), np.float64, count)
    columns: Columns = {
        "worker_id": spread(np.fromiter((worker_id for worker_id, _, _, _, _ in parts), np.int64, count)),
        "start_ms": starts,
        "end_ms": ends,
    }
    for name, source in COLUMNS.items():
        columns[name] = spread(of_step[source])
    columns["decode_kv_tokens"] = columns["decode_kv_tokens"] + within * spread(of_step["decode_kv_growth"])
    columns["output_tokens"] = spread(np.fromiter((tokens for _, _, _, tokens, _ in parts), np.int64, count))
    columns["queued_requests"] = spread(of_step["num_queued_prefill"] + of_step["num_queued_decode"])
    opened = np.cumsum(_opened_blocks(stats, lengths, firsts, total))
    opened -= spread(opened[firsts])  # none is opened before the first pass of a step
    used = spread(of_step["first_used_tokens"]) + spread(of_step["block_tokens"]) * opened
    columns["used_kv_tokens"] = np.maximum(used, 0)  # SGLang can hold less than nothing: `spec 05, 12`
    return columns


def _parts(
    steps: Sequence[tuple[int, Step]],
) -> list[tuple[int, float, Sequence[float], int, PassStats]]:
    """Passes that share their statistics: worker, start of the first one, ends, tokens emitted in each, statistics."""
    parts: list[tuple[int, float, Sequence[float], int, PassStats]] = []
    for worker_id, step in steps:
        ends_ms, stats = step.ends_ms, step.stats or PassStats()
        if step.later_stats is None or len(ends_ms) == 1:
            parts.append((worker_id, step.start_ms, ends_ms, step.tokens, stats))
        else:
            parts.append((worker_id, step.start_ms, ends_ms[:1], step.tokens, stats))
            parts.append((worker_id, ends_ms[0], ends_ms[1:], step.tokens, step.later_stats))
    return parts


def _opened_blocks(stats: list[PassStats], lengths: Ints, firsts: Ints, total: int) -> Ints:
    """Blocks that are held in a pass and were opened in the pass before it, both of one step."""
    long = np.flatnonzero(lengths > 1)
    # A step that was cut has some to spare.
    blocks = [
        stats[step].opened_blocks[: passes - 1]
        for step, passes in zip(long.tolist(), lengths[long].tolist(), strict=True)
    ]
    counts = np.fromiter(map(len, blocks), np.int64, len(blocks))
    known = int(counts.sum())
    within = np.arange(known) - np.repeat(np.cumsum(counts) - counts, counts)
    opened = np.zeros(total, dtype=np.int64)
    opened[np.repeat(firsts[long] + 1, counts) + within] = np.fromiter(
        chain.from_iterable(blocks), np.int64, known
    )
    return opened
