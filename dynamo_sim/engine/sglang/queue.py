"""The waiting requests of an SGLang-style worker and their order (`spec 05, 7`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from dynamo_sim.engine.lengths import Lengths
from dynamo_sim.engine.sglang.sequence import SglangSequence
from dynamo_sim.kv.radix_cache import RadixCache

MAX_SORTED = 128
"""Longer queues are left in the order they have."""

SHARED_TOKENS = 32
"""A request with at most this much in the cache waits behind one it shares at least this much with."""


class WaitingQueue:
    """Requests that wait for admission: arrivals, retracted ones, and prompts computed in part.

    Args:
        by_prefix: whether the longest cached prefix goes first ("lpm"); else the order is that of arrival.

    Attributes:
        waiting: all of them; the first one is to be admitted next.
        arrivals: how many have generated nothing yet, and their prompt lengths.
        returned: how many have been retracted, or wait on a decode worker, and their lengths.
    """

    def __init__(self, by_prefix: bool) -> None:
        self.by_prefix = by_prefix
        self.waiting: deque[SglangSequence] = deque()
        self.arrivals = Lengths()
        self.returned = Lengths()
        self._changes = 0
        self._sorted_at: tuple[int, int] | None = None

    @property
    def is_sorted(self) -> bool:
        """Whether what is cached decides about the order."""
        return self.by_prefix and 1 < len(self.waiting) <= MAX_SORTED

    def append(self, sequence: SglangSequence) -> None:
        """Queue an arrival."""
        self.waiting.append(sequence)
        self._enter(sequence)

    def push_front(self, sequences: Sequence[SglangSequence]) -> None:
        """Let those wait before all others, in their order."""
        for sequence in reversed(sequences):
            self.waiting.appendleft(sequence)
            self._enter(sequence)

    def pop(self) -> SglangSequence:
        """Take the head out."""
        head = self.waiting.popleft()
        self._left(head)
        return head

    def remove(self, sequence: SglangSequence) -> None:
        """Take out a sequence, wherever it stands."""
        self.waiting.remove(sequence)
        self._left(sequence)

    def sort(self, cache: RadixCache) -> None:
        """Order by what is cached now, as a pass does at its start.

        Requests with little in the cache go behind those they share a beginning with: there they will find it
        cached. Sorting again changes nothing as long as queue and cache are the same.
        """
        if not self.is_sorted or self._sorted_at == (self._changes, cache.changes):
            return
        page = cache.page_tokens
        shared_pages = -(-SHARED_TOKENS // page)
        beginnings: set[int] = set()
        keyed = []
        for place, sequence in enumerate(self.waiting):
            pages = sequence.tokens // page
            cached_tokens = cache.matched_pages(sequence, pages) * page
            repeats = False
            if cached_tokens <= SHARED_TOKENS and shared_pages <= min(pages, len(sequence.names)):
                beginning = sequence.names[shared_pages - 1]
                repeats = beginning in beginnings
                beginnings.add(beginning)
            keyed.append((repeats, -cached_tokens, place, sequence))
        keyed.sort(key=lambda item: item[:3])
        self.waiting.clear()
        self.waiting.extend(item[3] for item in keyed)
        self._sorted_at = (self._changes, cache.changes)

    def _left(self, sequence: SglangSequence) -> None:
        self._changes += 1
        if sequence.generated or sequence.handed_over:
            self.returned.remove(sequence.tokens)
        else:
            self.arrivals.remove(sequence.prompt_tokens)

    def _enter(self, sequence: SglangSequence) -> None:
        self._changes += 1
        if sequence.generated or sequence.handed_over:
            self.returned.add(sequence.tokens)
        else:
            self.arrivals.add(sequence.prompt_tokens)
