"""The paged KV blocks of a vLLM-style worker: which are held, which are cached, which go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence as Names
from itertools import groupby
from typing import TYPE_CHECKING

from dynamo_sim.kv.kv_events import KvEventLog

if TYPE_CHECKING:
    from dynamo_sim.engine.vllm.sequence import Sequence


class OwnRun:
    """Unnamed blocks of one sequence that lie in the inactive set: those with index ``low <= i < high``.

    They are evicted from the high end, and only the sequence itself can take them back, from the low end.
    """

    __slots__ = ("high", "low")

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high


class BlockPool:
    """``num_blocks`` slots, each free, active or inactive (`spec 03`).

    A full block that other sequences may share has a *name* (an integer, see `PrefixInterner`); blocks that nothing
    else can match are only counted. The inactive set is one queue in order of release: sequences release
    their last block first, and whoever holds a block holds the ones before it, so the oldest entry is always a leaf
    of the prefix forest, and evicting the oldest is the rule of `spec 03, 6`.

    Attributes:
        free: slots without content.
        inactive: cached full blocks without an owner.
        events: logs named blocks that come and go (`spec 03, 7`); None while KV events are not published.
    """

    __slots__ = ("_idle", "_owners", "block_size", "caching", "events", "free", "inactive", "num_blocks")

    def __init__(self, num_blocks: int, block_size: int, caching: bool = True) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.caching = caching
        self.free = num_blocks
        self.inactive = 0
        self.events: KvEventLog | None = None
        self._owners: dict[int, int] = {}
        self._idle: OrderedDict[int | OwnRun, None] = OrderedDict()

    @property
    def active(self) -> int:
        """Blocks held by somebody."""
        return self.num_blocks - self.free - self.inactive

    @property
    def available(self) -> int:
        """Blocks that can be taken: free ones, and inactive ones at the price of an eviction."""
        return self.free + self.inactive

    # ------------------------------------------------------------ questions

    def cached_prefix(self, sequence: Sequence) -> tuple[int, int]:
        """Tokens of the longest cached prefix, and of the part of it that is held by somebody now.

        Both are cut to the prompt (`spec 03, 3`). A pure look-up: nothing is moved or refreshed.
        """
        if not self.caching:
            return 0, 0
        owners, idle = self._owners, self._idle
        names = sequence.names
        full = sequence.full_blocks
        cached = held = 0
        for name in names if full >= len(names) else names[:full]:
            if name in owners:
                held += 1
            elif name not in idle:
                break
            cached += 1
        else:
            if sequence.own_runs:
                for run in sequence.own_runs:
                    if run.low != cached:
                        break
                    cached = max(cached, run.high)
        prompt = sequence.prompt_tokens
        size = self.block_size
        return min(cached * size, prompt), min(held * size, prompt)

    # ------------------------------------------------------------ taking

    def take_fresh(self, count: int) -> None:
        """Take ``count`` slots for unnamed content, free ones first. There must be that many available."""
        if count <= self.free:
            self.free -= count
        else:
            self.evict(count - self.free)
            self.free -= count

    def open_block(self) -> bool:
        """Take one slot for a partial block; False (and nothing changed) when there is none."""
        if self.free:
            self.free -= 1
        elif self.inactive:
            self.evict(1)
            self.free -= 1
        else:
            return False
        return True

    def take(self, sequence: Sequence, first: int, last: int) -> bool:
        """Take the blocks ``first <= i < last`` of a sequence, all or nothing (`spec 03, 4`)."""
        named = sequence.names[first : min(last, sequence.full_blocks)]
        fresh = last - first
        if not named and not sequence.own_runs:
            if fresh > self.free + self.inactive:
                return False
            self.take_fresh(fresh)
            return True
        owners, idle = self._owners, self._idle
        shared = [] if owners.keys().isdisjoint(named) else [name for name in named if name in owners]
        revived = [] if idle.keys().isdisjoint(named) else [name for name in named if name in idle]
        fresh -= len(shared) + len(revived)
        own = self._own_blocks(sequence, first + len(named), last)
        fresh -= own
        if fresh > self.free + self.inactive - len(revived) - own:
            # What was found returns as the newest; deepest first keeps children before their parents.
            self._refresh_own(sequence, first + len(named), own)
            for name in reversed(revived):
                idle.move_to_end(name)
            return False
        for name in revived:
            del idle[name]
        self._leave_own(sequence, first + len(named), own)
        self.inactive -= len(revived) + own
        if self.events is not None:
            self._log_stored(sequence.names, first, first + len(named), {*shared, *revived})
        self.take_fresh(fresh)
        if shared:
            counts = [owners[name] + 1 for name in shared]
            owners.update(dict.fromkeys(named, 1))
            owners.update(zip(shared, counts, strict=True))
        else:
            owners.update(dict.fromkeys(named, 1))
        return True

    # ------------------------------------------------------------ giving back

    def release(self, sequence: Sequence, blocks: int) -> None:
        """Give back the first ``blocks`` blocks of a sequence, last one first (`spec 03, 5`)."""
        full = min(blocks, sequence.full_blocks)
        self.free += blocks - full
        if not self.caching:
            self.free += full
            return
        names = sequence.names
        named = min(full, len(names))
        idle = self._idle
        if full > named:
            run = OwnRun(named, full)
            idle[run] = None
            self.inactive += full - named
            if sequence.own_runs:
                sequence.own_runs.insert(0, run)
            else:
                sequence.own_runs = [run]
        owners = self._owners
        for index in range(named - 1, -1, -1):
            name = names[index]
            count = owners[name] - 1
            if count:
                owners[name] = count
            else:
                del owners[name]
                idle[name] = None
                self.inactive += 1

    def promote(self, sequence: Sequence, index: int) -> None:
        """Give block ``index``, until now the partial one, its final identity (`spec 03, 5`).

        When the same content is there already, the sequence joins it and its own slot becomes free.
        """
        sequence.full_blocks = index + 1
        if not self.caching or index >= len(sequence.names):
            return
        name = sequence.names[index]
        if name in self._owners:
            self._owners[name] += 1
            self.free += 1
        else:
            if name in self._idle:
                del self._idle[name]
                self.inactive -= 1
                self.free += 1
            elif self.events is not None:
                self.events.stored(sequence.names[index - 1] if index else None, (name,))
            self._owners[name] = 1

    # ------------------------------------------------------------ eviction

    def evict(self, count: int) -> None:
        """Make ``count`` slots free: the inactive blocks released first go. There must be that many."""
        idle = self._idle
        self.inactive -= count
        self.free += count
        victims: list[int] = []
        while count:
            oldest = next(iter(idle))
            if isinstance(oldest, OwnRun):
                length = oldest.high - oldest.low
                if length > count:
                    oldest.high -= count
                    break
                oldest.high = oldest.low
                count -= length
            else:
                count -= 1
                victims.append(oldest)
            del idle[oldest]
        if victims and self.events is not None:
            self.events.removed(victims)

    # ------------------------------------------------------------ inside

    def _log_stored(self, names: Names[int], first: int, last: int, known: set[int]) -> None:
        """Log the new ones of the blocks ``first <= i < last``; a known block between them divides the events."""
        assert self.events is not None
        for is_known, run in groupby(range(first, last), lambda index: names[index] in known):
            if not is_known:
                indices = list(run)
                parent = names[indices[0] - 1] if indices[0] else None
                self.events.stored(parent, [names[index] for index in indices])

    def _own_blocks(self, sequence: Sequence, first: int, last: int) -> int:
        """How many of its unnamed blocks from ``first`` on lie in the inactive set, below ``last``."""
        found = 0
        for run in sequence.own_runs or ():
            if run.low == first + found:
                found += max(0, min(run.high, last) - run.low)
        return found

    def _leave_own(self, sequence: Sequence, first: int, count: int) -> None:
        """Take ``count`` unnamed blocks from ``first`` on out of the inactive set."""
        runs = sequence.own_runs
        while count and runs:
            run = runs[0]
            part = min(count, run.high - run.low)
            run.low += part
            count -= part
            if run.low >= run.high:
                self._idle.pop(run, None)
                runs.pop(0)

    def _refresh_own(self, sequence: Sequence, first: int, count: int) -> None:
        if not count:
            return
        self._leave_own(sequence, first, count)
        run = OwnRun(first, first + count)
        assert sequence.own_runs is not None
        sequence.own_runs.insert(0, run)
        self._idle[run] = None
