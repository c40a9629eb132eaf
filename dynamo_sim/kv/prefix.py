"""Content identity: equal integers mean equal prefixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dynamo_sim.workload.request import Runs

ROOT = 0
"""The empty prefix."""


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


def windows(runs: Sequence[tuple[int, int]], block_size: int) -> Iterator[int | Runs]:
    """Cut a token sequence into whole blocks of ``block_size`` tokens (a rest at the end is left out).

    A block of one token value yields that value, a mixed block the tuple of its runs.
    """
    mixed: list[tuple[int, int]] = []
    missing = block_size
    for value, length in runs:
        if mixed:
            part = min(missing, length)
            mixed.append((value, part))
            missing -= part
            length -= part
            if missing:
                continue
            yield tuple(mixed)
            mixed = []
            missing = block_size
        whole, rest = divmod(length, block_size)
        for _ in range(whole):
            yield value
        if rest:
            mixed.append((value, rest))
            missing = block_size - rest


class PrefixInterner:
    """Names token prefixes by small integers, exactly and without hashing tokens.

    Two block lists agree up to position ``k`` exactly when the two token sequences agree in their first
    ``(k + 1) * block_size`` tokens (`spec 08, 4`; `spec 03, 1`). One interner serves all workers of a run that
    share a block size; `fresh` names are unlike every other one.
    """

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self._names: dict[tuple[int, int | Runs], int] = {}
        self._next = ROOT + 1

    def fresh(self, count: int = 1) -> range:
        """``count`` consecutive names that nothing else has."""
        first = self._next
        self._next += count
        return range(first, first + count)

    def blocks(self, runs: Sequence[tuple[int, int]]) -> list[int]:
        """Names of the whole blocks of a token sequence written as merged runs, first block first."""
        names = self._names
        result = []
        parent = ROOT
        for window in windows(runs, self.block_size):
            key = (parent, window)
            name = names.get(key)
            if name is None:
                name = names[key] = self._next
                self._next += 1
            result.append(name)
            parent = name
        return result
