"""Content identity: equal integers mean equal prefixes."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_sim.errors import SimulationError
from dynamo_sim.limits import MAX_BLOCKS
from dynamo_sim.workload.content import merge_runs
from dynamo_sim.workload.request import FRESH_TOKEN, Request, Runs

__all__ = ["ROOT", "PrefixInterner", "merge_runs"]

ROOT = 0
"""The empty prefix."""


class PrefixInterner:
    """Names token prefixes by small integers, exactly and without hashing tokens.

    Two block lists agree up to position ``k`` exactly when the two token sequences agree in their first
    ``(k + 1) * block_size`` tokens (`spec 08, 4`; `spec 03, 1`). One interner serves all workers of a run
    that share a block size; `new_names` are unlike every other one.

    A trace id of 512 tokens fills many engine blocks with one value. Such a run costs one look-up: it is
    stored as ``(prefix before it, value) -> (first name, number of names)``, names being consecutive. A
    longer run of the same value after the same prefix continues under ``(its last name, value)``. That is
    unambiguous only because runs are merged: where a run of a value begins follows from the tokens alone.
    """

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self._run_names: dict[tuple[int, int], tuple[int, int]] = {}
        self._mixed: dict[tuple[int, Runs], int] = {}
        self._next = ROOT + 1

    def new_names(self, count: int = 1) -> range:
        """``count`` consecutive names that nothing else has."""
        first = self._next
        self._next += count
        return range(first, first + count)

    def names_of(self, request: Request) -> Sequence[int]:
        """Names of a request's whole blocks that others can share: of its prompt, and of a planned output behind it.

        Empty for a prompt unlike every other one. Whoever needs the names before the request reaches a worker stores
        them as ``request.block_names``; then they are not computed again.
        """
        if request.block_names is not None:
            return request.block_names
        prompt, planned = request.prompt, request.planned_output
        if prompt is None:
            return ()
        if not planned:
            return self.blocks(prompt)
        if planned[0] >= FRESH_TOKEN:  # made up by the workload, one value repeated
            return self.blocks(merge_runs((*prompt, (planned[0], len(planned)))))
        return self.blocks(merge_runs((*prompt, *((value, 1) for value in planned))))

    def blocks(self, runs: Sequence[tuple[int, int]]) -> list[int]:
        """Names of the whole blocks of a token sequence, first block first; a rest at the end has none.

        Runs that are not merged are merged first, at some cost.

        Raises:
            SimulationError: there are more than `MAX_BLOCKS`.
        """
        block_size = self.block_size
        run_names, mixed_names = self._run_names, self._mixed
        names: list[int] = []
        parent = ROOT
        mixed: list[tuple[int, int]] = []
        missing = 0
        previous = None
        for value, length in runs:
            if value == previous or length <= 0:
                return self.blocks(merge_runs(runs))
            previous = value
            if missing:
                if length < missing:
                    mixed.append((value, length))
                    missing -= length
                    continue
                mixed.append((value, missing))
                length -= missing
                key = (parent, tuple(mixed))
                name = mixed_names.get(key)
                if name is None:
                    name = mixed_names[key] = self._next
                    self._next += 1
                names.append(name)
                parent = name
                missing = 0
            if length >= block_size:
                whole = length // block_size
                if len(names) + whole > MAX_BLOCKS:
                    raise _too_long(runs, block_size)
                length -= whole * block_size
                known = run_names.get((parent, value))
                while known is not None and known[1] < whole:
                    first, count = known
                    names.extend(range(first, first + count))
                    parent = first + count - 1
                    whole -= count
                    known = run_names.get((parent, value))
                if known is None:
                    run_names[parent, value] = (self._next, whole)
                    first = self._next
                    self._next += whole
                else:
                    first = known[0]
                if whole == 1:
                    names.append(first)
                else:
                    names.extend(range(first, first + whole))
                parent = first + whole - 1
            if length:
                mixed = [(value, length)]
                missing = block_size - length
        return names


def _too_long(runs: Sequence[tuple[int, int]], block_size: int) -> SimulationError:
    tokens = sum(length for _, length in runs)
    return SimulationError(
        f"a prompt of {tokens:,} tokens has more than {MAX_BLOCKS:,} blocks of {block_size:,} tokens; "
        "shorten it, or raise the block size"
    )
