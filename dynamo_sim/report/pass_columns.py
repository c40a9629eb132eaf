"""Forward passes as columns: steps of any length, spread out to one element a pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.engine.pass_stats import PassStats
from dynamo_sim.engine.step import Step

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


def pass_columns(steps: list[tuple[int, Step]]) -> Columns:
    """All passes of ``steps``, in their order; the passes of a stretch follow one another.

    Returns:
        Equally long arrays, of floats for times and of whole numbers for all else: ``worker_id``;
        ``start_ms`` and ``end_ms``; the `COLUMNS` (requests and tokens that take part, ``prefill_kv_tokens``
        being prompt tokens that were there before); ``output_tokens`` emitted; ``queued_requests`` that wait
        after the pass, fresh and preempted; ``used_kv_tokens`` held during it.
    """
    lengths = np.fromiter((len(step.ends_ms) for _, step in steps), np.int64, len(steps))
    total = int(lengths.sum())
    firsts = np.cumsum(lengths) - lengths
    stats = [step.stats or PassStats() for _, step in steps]

    def spread(values: Iterable[int]) -> NDArray[np.int64]:
        return np.repeat(np.fromiter(values, np.int64, len(steps)), lengths)

    ends = np.fromiter(chain.from_iterable(step.ends_ms for _, step in steps), np.float64, total)
    starts = np.empty(total)
    starts[1:] = ends[:-1]
    starts[firsts] = np.fromiter((step.start_ms for _, step in steps), np.float64, len(steps))
    columns: Columns = {
        "worker_id": spread(worker_id for worker_id, _ in steps),
        "start_ms": starts,
        "end_ms": ends,
    }
    for name, source in COLUMNS.items():
        columns[name] = spread(map(attrgetter(source), stats))
    within = np.arange(total) - np.repeat(firsts, lengths)
    growth = spread(s.decode_kv_growth for s in stats)
    columns["decode_kv_tokens"] = columns["decode_kv_tokens"] + within * growth
    columns["output_tokens"] = spread(step.tokens for _, step in steps)
    columns["queued_requests"] = spread(s.num_queued_prefill + s.num_queued_decode for s in stats)
    columns["used_kv_tokens"] = np.fromiter(
        chain.from_iterable(
            _exactly(s.used_kv_tokens, len(step.ends_ms)) for (_, step), s in zip(steps, stats, strict=True)
        ),
        np.int64,
        total,
    )
    return columns


def _exactly(values: Sequence[int], count: int) -> Sequence[int]:
    """``count`` values: a step that was cut has some to spare, one without metrics has too few."""
    if len(values) >= count:
        return values[:count]
    return [*values, *repeat(values[-1] if values else 0, count - len(values))]
