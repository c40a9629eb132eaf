"""Content identity: equal integers mean equal prefixes."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_sim.errors import SimulationError
from dynamo_sim.limits import MAX_BLOCKS
from dynamo_sim.workload.content import merge_runs
from dynamo_sim.workload.request import MIN_UNIQUE_TOKEN, Request, Runs
from dynamo_sim.workload.transcript import PromptSoFar

__all__ = ["ROOT", "Naming", "PrefixInterner", "merge_runs"]

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

    Runs that fill one block each, behind a prefix that nothing was behind before, are stored together as the *tail* of
    that prefix: ``prefix -> (values, first name)``, names being consecutive. Where a later sequence leaves a tail in
    its middle, it is cut in two there. So what is unlike everything else costs one entry.
    """

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self._run_names: dict[tuple[int, int], tuple[int, int]] = {}
        self._tails: dict[int, tuple[list[int], int]] = {}
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
        content, planned = request.content, request.planned_output
        if content is None:
            return ()
        answer: Runs = ()
        if planned and planned[0] >= MIN_UNIQUE_TOKEN:  # made up by the workload, one value repeated
            answer = ((planned[0], len(planned)),)
        elif planned:
            answer = tuple((value, 1) for value in planned)
        if isinstance(content, PromptSoFar):
            return self._names_so_far(content, answer)
        prompt = request.prompt or ()
        return self.blocks(merge_runs((*prompt, *answer)) if answer else prompt)

    def _names_so_far(self, prompt: PromptSoFar, answer: Runs) -> list[int]:
        """Names of a conversation so far and an answer behind it; what earlier turns have named is not named again."""
        transcript, final_runs = prompt.transcript, max(prompt.run_count - 1, 0)
        naming = transcript.naming
        if not isinstance(naming, Naming) or naming.interner is not self or naming.run_count > final_runs:
            naming = transcript.naming = Naming(self)
        # The last run may still grow in later turns: only those before it are named for good.
        self.extend(naming, transcript.runs[naming.run_count : final_runs])
        naming.run_count = final_runs
        named = naming.copy()
        self.extend(named, merge_runs((*prompt.last_run, *answer)))
        return named.names

    def blocks(self, runs: Sequence[tuple[int, int]]) -> list[int]:
        """Names of the whole blocks of a token sequence, first block first; a rest at the end has none.

        Runs that are not merged are merged first, at some cost.

        Raises:
            SimulationError: there are more than `MAX_BLOCKS`.
        """
        naming = Naming(self)
        self.extend(naming, runs)
        return naming.names

    def extend(self, naming: Naming, runs: Sequence[tuple[int, int]]) -> None:
        """Name the blocks that ``runs`` complete behind the runs that were named before.

        The first of them must have another value than the last one named before.

        Raises:
            SimulationError: there are more than `MAX_BLOCKS`.
        """
        block_size = self.block_size
        run_names, mixed_names = self._run_names, self._mixed
        names, parent, mixed, missing = naming.names, naming.parent, naming.mixed, naming.missing
        named_before = len(names)
        tails = self._tails
        previous = None
        grown: list[int] | None = None  # the tail that this sequence adds to
        followed: list[int] = []  # the tail that it follows,
        origin = place = 0  # the prefix of that tail, and how much of it was found
        for value, length in runs:
            if value == previous or length <= 0:
                del names[named_before:]
                self.extend(naming, merge_runs(runs))
                return
            previous = value
            if length == block_size and not missing:
                if grown is not None:
                    grown.append(value)
                elif place < len(followed) and followed[place] == value:
                    place += 1
                    parent += 1
                    names.append(parent)
                    continue
                else:
                    if place < len(followed):
                        self._cut_tail(origin, place)
                    followed = []
                    known = run_names.get((parent, value))
                    if known is not None:
                        parent = known[0]
                        names.append(parent)
                        continue
                    tail = tails.get(parent)
                    if tail is None:
                        grown = [value]
                        tails[parent] = (grown, self._next)
                    elif tail[0][0] == value:
                        followed, origin, place = tail[0], parent, 1
                        parent = tail[1]
                        names.append(parent)
                        continue
                    else:
                        run_names[parent, value] = (self._next, 1)
                parent = self._next
                self._next += 1
                names.append(parent)
                continue
            grown = None
            if place < len(followed):
                self._cut_tail(origin, place)
            followed = []
            if missing:
                if length < missing:
                    mixed = (*mixed, (value, length))
                    missing -= length
                    continue
                key = (parent, (*mixed, (value, missing)))
                length -= missing
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
                known = run_names.get((parent, value)) or self._taken_out_of_tail(parent, value)
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
                mixed = ((value, length),)
                missing = block_size - length
        if place < len(followed):
            self._cut_tail(origin, place)
        if len(names) > MAX_BLOCKS:
            raise _too_long(runs, block_size)
        naming.parent, naming.mixed, naming.missing = parent, mixed, missing

    def _cut_tail(self, prefix: int, place: int) -> None:
        """Let the tail of a prefix end after ``place`` blocks; what follows is the tail of the last of them."""
        values, first = self._tails[prefix]
        self._tails[prefix] = (values[:place], first)
        self._tails[first + place - 1] = (values[place:], first + place)

    def _taken_out_of_tail(self, prefix: int, value: int) -> tuple[int, int] | None:
        """The block of a value right behind a prefix, as a run of its own, if it is the first of the prefix's tail."""
        values, first = self._tails.get(prefix, ((), 0))
        if not values or values[0] != value:
            return None
        if len(values) > 1:
            self._cut_tail(prefix, 1)
        del self._tails[prefix]
        known = self._run_names[prefix, value] = (first, 1)
        return known


class Naming:
    """A token sequence as far as its blocks are named.

    Attributes:
        interner: who names them.
        names: names of its whole blocks.
        parent: name of the last one.
        mixed: the tokens behind it, less than a block.
        missing: how many more would fill that block; 0 where there are no such tokens.
        run_count: runs named so far, where they are those of a conversation.
    """

    __slots__ = ("interner", "missing", "mixed", "names", "parent", "run_count")

    def __init__(self, interner: PrefixInterner) -> None:
        self.interner = interner
        self.names: list[int] = []
        self.parent = ROOT
        self.mixed: Runs = ()
        self.missing = 0
        self.run_count = 0

    def copy(self) -> Naming:
        """One of its own, to be extended in another way."""
        copy = Naming(self.interner)
        copy.names = self.names.copy()
        copy.parent, copy.mixed, copy.missing = self.parent, self.mixed, self.missing
        return copy


def _too_long(runs: Sequence[tuple[int, int]], block_size: int) -> SimulationError:
    tokens = sum(length for _, length in runs)
    return SimulationError(
        f"a prompt of {tokens:,} tokens has more than {MAX_BLOCKS:,} blocks of {block_size:,} tokens; "
        "shorten it, or raise the block size"
    )
