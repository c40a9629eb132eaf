"""The waiting requests of an SGLang-style worker and their order (`spec 05, 7`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from dynamo_sim.engine.sglang_sequence import SglangSequence
from dynamo_sim.engine.step import PassStats
from dynamo_sim.kv.radix_cache import RadixCache
from dynamo_sim.metrics.variance import variance_of_sums

MOST_SORTED = 128
"""Longer queues are left in the order of arrival."""

SHARED_TOKENS = 32
"""From this length on a prefix in common with somebody further ahead makes a request wait for that one's pages."""


class WaitingQueue:
    """Requests that wait for admission: fresh ones, retracted ones, and prompts computed in part.

    Args:
        by_prefix: whether the longest cached prefix goes first ("lpm"); otherwise the order is that of arrival.
    """

    def __init__(self, by_prefix: bool) -> None:
        self.by_prefix = by_prefix
        self._items: deque[SglangSequence] = deque()
        self._sorted_for: tuple[int, int] | None = None
        self._changes = 0
        self._fresh = _Sums()
        self._returned = _Sums()

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
        """Whether what is cached can change the order."""
        return self.by_prefix and 1 < len(self._items) <= MOST_SORTED

    def append(self, sequence: SglangSequence) -> None:
        """Queue an arrival."""
        self._items.append(sequence)
        self._note(sequence, 1)

    def push_front(self, sequences: Sequence[SglangSequence]) -> None:
        """Let those wait before all others, in their order."""
        for sequence in reversed(sequences):
            self._items.appendleft(sequence)
            self._note(sequence, 1)

    def pop(self) -> SglangSequence:
        """Take the head out."""
        head = self._items.popleft()
        self._note(head, -1)
        return head

    def sort(self, cache: RadixCache) -> None:
        """Order by what is cached now, as a pass does at its start.

        Requests with little in the cache that share a beginning with one further ahead go last: behind it they find
        the beginning cached.
        """
        if not self.is_sorted or self._sorted_for == (self._changes, cache.changes):
            return
        page = cache.page_tokens
        shared_pages = -(-SHARED_TOKENS // page)
        ahead: set[int] = set()
        keyed = []
        for place, sequence in enumerate(self._items):
            pages = sequence.tokens // page
            cached = cache.matched_pages(sequence, pages) * page
            repeats = False
            if cached <= SHARED_TOKENS and shared_pages <= min(pages, len(sequence.names)):
                beginning = sequence.names[shared_pages - 1]
                repeats = beginning in ahead
                ahead.add(beginning)
            keyed.append((repeats, -cached, place, sequence))
        keyed.sort(key=lambda item: item[:3])
        self._items = deque(item[3] for item in keyed)
        self._sorted_for = (self._changes, cache.changes)

    def _note(self, sequence: SglangSequence, sign: int) -> None:
        self._changes += 1
        if sequence.generated:
            self._returned.add(sequence.prompt_tokens + sequence.generated, sign)
        else:
            self._fresh.add(sequence.prompt_tokens, sign)

    def fill(self, stats: PassStats) -> None:
        """Note what waits (`spec 05, 14`); a prompt computed in part counts with its whole length."""
        fresh, returned = self._fresh, self._returned
        stats.num_queued_prefill = fresh.count
        stats.sum_queued_prefill_tokens = fresh.total
        stats.var_queued_prefill_length = fresh.variance
        stats.num_queued_decode = returned.count
        stats.sum_queued_decode_kv_tokens = returned.total
        stats.var_queued_decode_kv_tokens = returned.variance


class _Sums:
    """Count, sum and sum of squares of whole numbers that come and go."""

    __slots__ = ("count", "squares", "total")

    def __init__(self) -> None:
        self.count = self.total = self.squares = 0

    def add(self, value: int, sign: int) -> None:
        self.count += sign
        self.total += sign * value
        self.squares += sign * value * value

    @property
    def variance(self) -> float:
        return variance_of_sums(self.count, self.total, self.squares)
