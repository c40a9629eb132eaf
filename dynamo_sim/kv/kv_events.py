"""KV events: what a router learns of the blocks a worker has cached (`spec 03, 7`; `spec 05, 6`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple


class KvEvent(NamedTuple):
    """Blocks that can be found from now on, or no longer.

    Only blocks with a name appear: nobody can ask for the others. How blocks are grouped into events carries no
    meaning, their order does.

    Attributes:
        kind: "stored" or "removed".
        parent: name of the block before the first one stored, None at the beginning of a prompt and for "removed".
        names: names of the blocks (`PrefixInterner`), in order.
    """

    kind: Literal["stored", "removed"]
    parent: int | None
    names: tuple[int, ...]


class KvEventLog:
    """Events of one cache that nobody has taken yet."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: list[KvEvent] = []

    def stored(self, parent: int | None, names: Iterable[int]) -> None:
        """Add blocks that came; ``parent`` is the block before the first one."""
        self._events.append(KvEvent("stored", parent, tuple(names)))

    def removed(self, names: Iterable[int]) -> None:
        """Add blocks that went."""
        self._events.append(KvEvent("removed", None, tuple(names)))

    def take(self) -> list[KvEvent]:
        """Everything since the last call, in order."""
        events, self._events = self._events, []
        return events


class PageCopies:
    """Counts copies of pages, and logs a page when its first copy comes and when its last one goes.

    An SGLang-style worker can hold one page several times: requests keep slots of their own for pages the tree
    already has.
    """

    __slots__ = ("_copies", "log")

    def __init__(self) -> None:
        self.log = KvEventLog()
        self._copies: dict[int, int] = {}

    def stored(self, names: Sequence[int], first: int, last: int) -> None:
        """There is another copy of each of the pages ``first <= i < last`` of a text."""
        copies = self._copies
        last = min(last, len(names))
        for name in names[first:last]:
            copies[name] = copies.get(name, 0) + 1
        while first < last and copies[names[first]] > 1:
            first += 1
        if first < last:
            self.log.stored(names[first - 1] if first else None, names[first:last])

    def removed(self, names: Iterable[int]) -> None:
        """A copy of each of these pages is gone."""
        copies = self._copies
        gone = []
        for name in names:
            count = copies.get(name, 0)
            if count > 1:
                copies[name] = count - 1
            elif count:
                del copies[name]
                gone.append(name)
        if gone:
            self.log.removed(gone)
