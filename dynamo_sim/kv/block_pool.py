"""The paged KV blocks of a vLLM-style worker: which are held, which are cached, which go first."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from itertools import groupby

from dynamo_sim.kv.allocation import NO_ROOM, TAKEN, Allocation, BlockedUntil
from dynamo_sim.kv.block_table import BlockTable, PrivateRun
from dynamo_sim.kv.kv_events import KvEventLog


class BlockPool:
    """``num_blocks`` slots, each free, active or inactive (`spec 03, 2 and 9`).

    A full block that other tables may share has a *name* (an integer, see `PrefixInterner`); blocks that nothing
    else can match are only counted. The inactive set is one queue in order of release: a table gives back
    its last block first, and whoever holds a block holds the ones before it, so the oldest entry is always a leaf
    of the prefix forest, and evicting the oldest is the rule of `spec 03, 6`.

    Attributes:
        free: slots without content.
        inactive: cached full blocks without an owner.
        events: logs named blocks that come and go (`spec 03, 7`); None while KV events are not published.
    """

    __slots__ = (
        "_inactive",
        "_owners",
        "_pins",
        "block_size",
        "caching",
        "events",
        "free",
        "inactive",
        "num_blocks",
    )

    def __init__(self, num_blocks: int, block_size: int, caching: bool = True) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.caching = caching
        self.free = num_blocks
        self.inactive = 0
        self.events: KvEventLog | None = None
        self._owners: dict[int, int] = {}
        self._pins: dict[int, int] = {}  # how many of the owners are reservations
        self._inactive: OrderedDict[int | PrivateRun, None] = OrderedDict()

    @property
    def active(self) -> int:
        """Blocks held by somebody."""
        return self.num_blocks - self.free - self.inactive

    @property
    def available(self) -> int:
        """Blocks that can be taken: free ones, and inactive ones at the price of an eviction."""
        return self.free + self.inactive

    @property
    def available_now(self) -> int:
        """Blocks that `open` gives without a `BlockedUntil`. Here an eviction takes no time, so these are all."""
        return self.free + self.inactive

    def all_names(self, names: Sequence[int], full_blocks: int) -> Sequence[int]:
        """Names for a table that will have so many full blocks, of which those with ``names`` can be shared."""
        return names

    # ------------------------------------------------------------ questions

    def cached_prefix(self, table: BlockTable) -> tuple[int, int]:
        """Blocks of the longest cached prefix of a table, and how many of them somebody holds now (`spec 03, 3`).

        A pure look-up: nothing is moved or refreshed.
        """
        names = table.names
        if not (names or table.private_runs) or not self.caching:
            return 0, 0
        owners, inactive = self._owners, self._inactive
        full = table.full_blocks
        cached = held = 0
        for name in names if full >= len(names) else names[:full]:
            if name in owners:
                held += 1
            elif name not in inactive:
                break
            cached += 1
        else:
            for run in table.private_runs or ():
                if run.first != cached:
                    break
                cached = run.last
        if self._pins:
            held -= self._only_pinned(names[:cached])
        return cached, held

    def _only_pinned(self, names: Sequence[int]) -> int:
        """How many of some blocks nobody holds but reservations."""
        pins, owners = self._pins, self._owners
        return sum(name in pins and owners[name] == pins[name] for name in names)

    # ------------------------------------------------------------ taking

    def open(self, count: int) -> Allocation:
        """Take slots for ``count`` partial blocks, free ones first. It is for the caller to note whose they are."""
        if count > self.free:
            if count > self.free + self.inactive:
                return NO_ROOM
            self.evict(count - self.free)
        self.free -= count
        return TAKEN

    def take(self, table: BlockTable, blocks: int) -> Allocation:
        """Let a table hold its first ``blocks`` blocks, those it does not hold yet all or none (`spec 03, 4`)."""
        first, full = table.held_blocks, table.full_blocks
        missing = blocks - first
        names = table.names[first : blocks if blocks < full else full]
        if not names and not table.private_runs:
            answer = self.open(missing)
            if answer is TAKEN:
                table.held_blocks = blocks
            return answer
        # Whatever is known already is shared, also behind an unknown block: its tokens will be computed for nothing.
        # Blocks somebody holds cost no slot; inactive ones keep theirs, and must not be evicted by this very call.
        owners, inactive = self._owners, self._inactive
        held = [] if owners.keys().isdisjoint(names) else [name for name in names if name in owners]
        revived = [] if inactive.keys().isdisjoint(names) else [name for name in names if name in inactive]
        private_first = first + len(names)
        private = _private_blocks(table, private_first, blocks)
        new = missing - len(held) - len(revived) - private
        if new > self.free + self.inactive - len(revived) - private:
            # What was found becomes the newest of the inactive set. The specification gives the new ticks in block
            # order, but evicts leaves first: moving the deepest block first comes to the same.
            self._refresh_private(table, private_first, private)
            for name in reversed(revived):
                inactive.move_to_end(name)
            return NO_ROOM
        for name in revived:
            del inactive[name]
        self._revive_private(table, private)
        self.inactive -= len(revived) + private
        if self.events is not None:
            self._log_stored(table.names, range(first, first + len(names)), {*held, *revived})
        self.open(new)
        counts = [owners[name] + 1 for name in held]
        owners.update(dict.fromkeys(names, 1))
        owners.update(zip(held, counts, strict=True))
        table.held_blocks = blocks
        return TAKEN

    def reserve(self, table: BlockTable, blocks: int) -> int | BlockedUntil | None:
        """Keep room for the first ``blocks`` blocks of a prompt whose KV is computed elsewhere (`spec 07, 5.2`).

        The table holds the cached prefix from now on: it is pinned, which is not counted as held by somebody before
        `fill`. Slots are set aside for the rest; nobody can find what will lie in them before that.

        Returns:
            How many were set aside; None, and nothing was taken, when there is no room.
        """
        found = self.cached_prefix(table)[0]
        owners, inactive = self._owners, self._inactive
        names = table.names[:found]
        revived = [name for name in names if name in inactive]
        missing = blocks - found
        if missing > self.free + self.inactive - len(revived):
            for name in reversed(revived):  # as in `take`
                inactive.move_to_end(name)
            return None
        for name in revived:
            del inactive[name]
        self.inactive -= len(revived)
        for name in names:
            owners[name] = owners.get(name, 0) + 1
            self._pins[name] = self._pins.get(name, 0) + 1
        table.held_blocks = found
        self.open(missing)
        return missing

    def fill(self, table: BlockTable, blocks: int) -> None:
        """The KV that `reserve` was called for has come: the table holds its first ``blocks`` blocks (`spec 07, 5.4`).

        Slots of blocks that have become known in the meantime are free again.
        """
        self._unpin(table)
        named = min(blocks, table.full_blocks, len(table.names)) if self.caching else 0
        for index in range(table.held_blocks, named):
            self._adopt(table.names, index)
        table.held_blocks = blocks

    def abandon(self, table: BlockTable, missing: int) -> None:
        """The KV that `reserve` set ``missing`` slots aside for will not come."""
        self._unpin(table)
        self.free += missing
        self.release(table)

    def _unpin(self, table: BlockTable) -> None:
        pins = self._pins
        for name in table.names[: table.held_blocks]:
            if pins[name] > 1:
                pins[name] -= 1
            else:
                del pins[name]

    # ------------------------------------------------------------ giving back

    def give_back(self, count: int) -> None:
        """Take back slots that `open` has given for blocks that never came to be."""
        self.free += count

    def release(self, table: BlockTable) -> None:
        """Give back all blocks a table holds, the last one first (`spec 03, 5`); full ones stay cached."""
        held = table.held_blocks
        table.held_blocks = 0
        if not self.caching:
            self.free += held
            return
        names, full = table.names, table.full_blocks
        if full > held:
            full = held
        self.free += held - full
        named = len(names)
        if named > full:
            named = full
        inactive = self._inactive
        if full > named:
            run = PrivateRun(named, full)
            inactive[run] = None
            self.inactive += full - named
            if table.private_runs:
                table.private_runs.insert(0, run)
            else:
                table.private_runs = [run]
        owners = self._owners
        for index in range(named - 1, -1, -1):
            name = names[index]
            count = owners[name] - 1
            if count:
                owners[name] = count
            else:
                del owners[name]
                inactive[name] = None
                self.inactive += 1

    def promote(self, table: BlockTable) -> None:
        """Give the partial block of a table its final identity (`spec 03, 5`).

        When the same content is there already, the table joins it and its slot becomes free.
        """
        index = table.full_blocks
        table.full_blocks = index + 1
        if self.caching and index < len(table.names):
            self._adopt(table.names, index)

    def _adopt(self, names: Sequence[int], index: int) -> None:
        """Make a slot that has no name yet the block ``index`` of a text, or free where that block is there already."""
        name = names[index]
        if name in self._owners:
            self._owners[name] += 1
            self.free += 1
        else:
            if name in self._inactive:
                del self._inactive[name]
                self.inactive -= 1
                self.free += 1
            elif self.events is not None:
                self._log_stored(names, range(index, index + 1), set())
            self._owners[name] = 1

    # ------------------------------------------------------------ eviction

    def evict(self, count: int) -> list[int]:
        """Make ``count`` slots free: the inactive blocks released first go. There must be that many.

        Returns:
            Names of the victims in order of eviction; private ones have none.
        """
        inactive = self._inactive
        self.inactive -= count
        self.free += count
        victims: list[int] = []
        while count:
            oldest = next(iter(inactive))
            if isinstance(oldest, PrivateRun):
                length = oldest.last - oldest.first
                if length > count:
                    oldest.last -= count
                    break
                oldest.last = oldest.first
                count -= length
            else:
                count -= 1
                victims.append(oldest)
            del inactive[oldest]
        if victims and self.events is not None:
            self.events.removed(victims)
        return victims

    # ------------------------------------------------------------ inside

    def _log_stored(self, names: Sequence[int], indices: range, known: set[int]) -> None:
        """Log the new ones of some blocks; a known block between them divides the events."""
        assert self.events is not None
        first, last = indices.start, indices.stop
        behind_known = first + len(known)
        if known.issuperset(
            names[first:behind_known]
        ):  # as always, but for what was found behind an unknown block
            if behind_known < last:
                self.events.stored(
                    names[behind_known - 1] if behind_known else None, names[behind_known:last]
                )
            return
        for is_known, group in groupby(indices, lambda index: names[index] in known):
            if not is_known:
                run = list(group)
                self.events.stored(names[run[0] - 1] if run[0] else None, [names[index] for index in run])

    def _revive_private(self, table: BlockTable, count: int) -> None:
        """Take the first ``count`` inactive private blocks of a table out of the inactive set."""
        runs = table.private_runs
        while count and runs:
            run = runs[0]
            part = min(count, run.last - run.first)
            run.first += part
            count -= part
            if run.first >= run.last:
                self._inactive.pop(run, None)
                runs.pop(0)

    def _refresh_private(self, table: BlockTable, first: int, count: int) -> None:
        """Make ``count`` inactive private blocks of a table, from ``first`` on, the newest of the inactive set."""
        if not count:
            return
        self._revive_private(table, count)
        run = PrivateRun(first, first + count)
        assert table.private_runs is not None
        table.private_runs.insert(0, run)
        self._inactive[run] = None

    # ------------------------------------------------------------ for tests

    def check(self, tables: Iterable[BlockTable], unsettled: int = 0) -> None:
        """Check that the books agree with all tables that hold blocks.

        Args:
            tables: every table that holds blocks, or may have left some in the inactive set.
            unsettled: blocks that `open` has given and no table counts yet.

        Raises:
            AssertionError: they do not agree.
        """
        holders: Counter[int] = Counter()
        private = 0
        for table in tables:
            named = min(table.held_blocks, table.full_blocks, len(table.names)) if self.caching else 0
            holders.update(table.names[:named])
            private += table.held_blocks - named
        assert self.free >= 0 and self.inactive >= 0
        assert holders == self._owners
        assert self.active == len(holders) + private + unsettled
        runs = [entry for entry in self._inactive if isinstance(entry, PrivateRun)]
        assert all(run.first < run.last for run in runs)
        named = len(self._inactive) - len(runs)
        assert self.inactive == named + sum(run.last - run.first for run in runs)
        assert self._owners.keys().isdisjoint(self._inactive)


def _private_blocks(table: BlockTable, first: int, last: int) -> int:
    """How many of its private blocks from ``first`` on lie in the inactive set, below ``last``."""
    found = 0
    for run in table.private_runs or ():
        if run.first == first + found:
            found += max(0, min(run.last, last) - run.first)
    return found
