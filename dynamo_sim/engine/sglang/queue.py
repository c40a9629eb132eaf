"""The waiting requests of an SGLang-style worker and their order (`spec 05, 7`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from dynamo_sim.engine.sglang.sequence import SglangSequence
from dynamo_sim.kv.radix_cache import RadixCache

MOST_SORTED = 128
"""Longer queues are left in the order they have."""

SHARED_TOKENS = 32
"""A request with at most this much in the cache waits behind one it shares at least this much with."""


class WaitingQueue:
    """Requests that wait for admission: fresh ones, retracted ones, and prompts computed in part.

    Args:
        by_prefix: whether the longest cached prefix goes first ("lpm"); else the order is that of arrival.

    Attributes:
        fresh: how many have generated nothing yet, and their prompt lengths.
        returned: how many have been retracted, and their lengths.
    """

    def __init__(self, by_prefix: bool) -> None:
        self.by_prefix = by_prefix
        self.fresh = Lengths()
        self.returned = Lengths()
        self._items: deque[SglangSequence] = deque()
        self._changes = 0
        self._sorted_at: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[SglangSequence]:
        return iter(self._items)

    @property
    def head(self) -> SglangSequence:
        """The one to be admitted next."""
        return self._items[0]

    @property
    def is_sorted(self) -> bool:
        """Whether what is cached decides about the order."""
        return self.by_prefix and 1 < len(self._items) <= MOST_SORTED

    def append(self, sequence: SglangSequence) -> None:
        """Queue an arrival."""
        self._items.append(sequence)
        self._count(sequence, 1)

    def push_front(self, sequences: Sequence[SglangSequence]) -> None:
        """Let those wait before all others, in their order."""
        for sequence in reversed(sequences):
            self._items.appendleft(sequence)
            self._count(sequence, 1)

    def pop(self) -> SglangSequence:
        """Take the head out."""
        head = self._items.popleft()
        self._count(head, -1)
        return head

    def sort(self, cache: RadixCache) -> None:
        """Order by what is cached now, as a pass does at its start.

        Requests with little in the cache go behind those they share a beginning with: there they will find it
        cached. Sorting again changes nothing as long as queue and cache are the same.
        """
        if not self.is_sorted or self._sorted_at == (self._changes, cache.changes):
            return
        page = cache.page_tokens
        shared_pages = -(-SHARED_TOKENS // page)
        ahead: set[int] = set()
        keyed = []
        for place, sequence in enumerate(self._items):
            pages = sequence.tokens // page
            cached_tokens = cache.matched_pages(sequence, pages) * page
            repeats = False
            if cached_tokens <= SHARED_TOKENS and shared_pages <= min(pages, len(sequence.names)):
                beginning = sequence.names[shared_pages - 1]
                repeats = beginning in ahead
                ahead.add(beginning)
            keyed.append((repeats, -cached_tokens, place, sequence))
        keyed.sort(key=lambda item: item[:3])
        self._items = deque(item[3] for item in keyed)
        self._sorted_at = (self._changes, cache.changes)

    def _count(self, sequence: SglangSequence, sign: int) -> None:
        self._changes += 1
        if sequence.generated:
            self.returned.add(sequence.tokens, sign)
        else:
            self.fresh.add(sequence.prompt_tokens, sign)


class Lengths:
    """Count, sum and sum of squares of lengths that come and go."""

    __slots__ = ("count", "squares", "total")

    def __init__(self) -> None:
        self.count = self.total = self.squares = 0

    def add(self, length: int, sign: int) -> None:
        """Note a length that comes (1) or goes (-1)."""
        self.count += sign
        self.total += sign * length
        self.squares += sign * length * length
