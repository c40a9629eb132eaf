"""The blocks of one holder, all a pool has to know of it."""

from __future__ import annotations

from collections.abc import Sequence


class PrivateRun:
    """Unnamed blocks of one table that lie in the inactive set: those with index ``first <= i < last``.

    They are evicted from the end, and only their own table can take them back, from the beginning.
    """

    __slots__ = ("first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last


class BlockTable:
    """The blocks a holder has, or may ask for, from the first one on (`spec 03, 1`).

    Attributes:
        names: names of the full blocks other tables may share (`PrefixInterner`); block ``i`` has none, and is private,
            for ``i >= len(names)``.
        full_blocks: how many blocks, from the first on, have their final identity. The one behind them is partial.
        held_blocks: how many blocks, from the first on, are held.
        private_runs: full private blocks that a release left in the inactive set, in order.
    """

    __slots__ = ("full_blocks", "held_blocks", "names", "private_runs")

    def __init__(self, names: Sequence[int], full_blocks: int) -> None:
        self.names = names
        self.full_blocks = full_blocks
        self.held_blocks = 0
        self.private_runs: list[PrivateRun] | None = None
