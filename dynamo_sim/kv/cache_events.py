"""What a cache tells a router: which blocks have come, and which have gone (`spec 05, 6`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple


class CacheEvent(NamedTuple):
    """Blocks that can be found from now on, or no longer.

    Attributes:
        kind: "stored" or "removed".
        parent: name of the block before the first one stored, None for the beginning of a text.
        names: names of the blocks (`PrefixInterner`), in order.
    """

    kind: Literal["stored", "removed"]
    parent: int | None
    names: tuple[int, ...]


class CacheEvents:
    """Tells of a block when its first copy comes and when its last one goes.

    Only blocks with a name count: nobody can ask for the others.
    """

    def __init__(self) -> None:
        self._copies: dict[int, int] = {}
        self._untold: list[CacheEvent] = []

    def stored(self, names: Sequence[int], first: int, last: int) -> None:
        """There is another copy of each of the blocks ``first <= i < last`` of a text."""
        copies = self._copies
        last = min(last, len(names))
        for name in names[first:last]:
            copies[name] = copies.get(name, 0) + 1
        while first < last and copies[names[first]] > 1:
            first += 1
        if first < last:
            parent = names[first - 1] if first else None
            self._untold.append(CacheEvent("stored", parent, tuple(names[first:last])))

    def removed(self, names: Iterable[int]) -> None:
        """A copy of each of these blocks is gone."""
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
            self._untold.append(CacheEvent("removed", None, tuple(gone)))

    def take(self) -> list[CacheEvent]:
        """What has happened since the last call, in order."""
        untold, self._untold = self._untold, []
        return untold
