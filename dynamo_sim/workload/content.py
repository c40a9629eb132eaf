"""Token content as runs of equal values: a run needs no more of a token than equality (`spec 08, 4`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, repeat
from operator import eq

from dynamo_sim.workload.request import Runs


def merge_runs(runs: Sequence[tuple[int, int]]) -> Runs:
    """Merge neighbours of one token value and drop empty runs: the one way to write a token sequence."""
    merged: list[tuple[int, int]] = []
    for value, length in runs:
        if length <= 0:
            continue
        if merged and merged[-1][0] == value:
            merged[-1] = (value, merged[-1][1] + length)
        else:
            merged.append((value, length))
    return tuple(merged)


def runs_of_ids(values: Sequence[int], block_tokens: int, length: int) -> Runs:
    """The first ``length`` tokens of token values laid end to end, ``block_tokens`` of each (`spec 08, 4`).

    ``values`` must hold exactly the ones needed, that is ceil(length / block_tokens).
    """
    if not length:
        return ()
    last = length - (len(values) - 1) * block_tokens
    runs = (*zip(values[:-1], repeat(block_tokens)), (values[-1], last))
    if any(map(eq, values, islice(values, 1, None))):
        return merge_runs(runs)
    return runs
