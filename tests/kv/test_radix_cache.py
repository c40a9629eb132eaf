"""The prefix tree of an SGLang-style worker (`spec 05, 4`)."""

from __future__ import annotations

from dynamo_sim.kv.radix_cache import Node, RadixCache


class Words:
    """A text whose pages are named by the words of a sentence so far; ``unnamed`` ones follow."""

    known: dict[tuple[str, ...], int] = {}  # noqa: RUF012

    def __init__(self, sentence: str) -> None:
        words = sentence.split()
        self.names = [
            self.known.setdefault(tuple(words[: i + 1]), len(self.known)) for i in range(len(words))
        ]


def cached(cache: RadixCache, text: Words, by_page: bool = False) -> Node:
    """Put a text into the tree and use it no longer."""
    node, _ = cache.put(cache.root, text, len(text.names), by_page)
    assert cache.take(cache.evictable - cached_before(cache))
    cache.refresh(node, cache.root, cache.now())
    return node


def cached_before(cache: RadixCache) -> int:
    """Evictable tokens that are already off the free count."""
    return 100 - cache.free


def test_a_match_is_as_long_as_the_common_beginning_in_whole_pages() -> None:
    cache = RadixCache(100, 4)
    cached(cache, Words("a b c d"))
    assert cache.matched_pages(Words("a b x"), 3) == 2
    assert cache.match(Words("a b c d e"), 5)[0] == 4
    assert cache.match(Words("a b c d"), 3)[0] == 3
    assert cache.match(Words("x b c"), 3)[0] == 0


def test_pages_without_a_name_match_only_the_same_text() -> None:
    cache = RadixCache(100, 4)
    text = Words("a")
    cache.put(cache.root, text, 3, by_page=False)
    assert cache.matched_pages(text, 3) == 3
    assert cache.matched_pages(Words("a b c"), 3) == 1


def test_an_edge_that_entered_at_once_is_evicted_whole() -> None:
    cache = RadixCache(100, 4)
    cached(cache, Words("a b c d"))
    cache.evict(1)
    assert (cache.free, cache.evictable) == (100, 0)
    assert cache.matched_pages(Words("a"), 1) == 0


def test_pages_that_entered_one_by_one_are_evicted_from_the_end() -> None:
    cache = RadixCache(100, 4)
    cached(cache, Words("a b c d"), by_page=True)
    cache.evict(5)
    assert (cache.free, cache.evictable) == (92, 8)
    assert cache.matched_pages(Words("a b c d"), 4) == 2


def test_a_match_inside_an_edge_splits_it_and_refreshes_nothing_of_it() -> None:
    cache = RadixCache(100, 4)
    cached(cache, Words("a b c d"))
    cached(cache, Words("x"))
    cache.match(Words("a b"), 2)
    cache.evict(1)  # the lower half, the older part of the split edge
    assert cache.matched_pages(Words("a b c d"), 4) == 2
    cache.evict(1)  # its upper half is still older than x
    assert cache.matched_pages(Words("a b"), 2) == 0
    assert cache.matched_pages(Words("x"), 1) == 1


def test_a_match_inside_a_chain_of_pages_refreshes_what_it_covers() -> None:
    cache = RadixCache(100, 4)
    cached(cache, Words("a b c d"), by_page=True)
    cached(cache, Words("x"))
    cache.match(Words("a b"), 2)
    cache.evict(12)
    assert cache.matched_pages(Words("a b c d"), 4) == 2
    assert cache.matched_pages(Words("x"), 1) == 0


def test_what_somebody_uses_stays() -> None:
    cache = RadixCache(100, 4)
    node = cached(cache, Words("a b"))
    cached(cache, Words("a b c"))
    cache.lock(node)
    assert cache.evictable == 4
    cache.evict(100)
    assert cache.matched_pages(Words("a b c"), 3) == 2
    cache.unlock(node, cache.now())
    assert cache.evictable == 8
    cache.evict(100)
    assert cache.free == 100


def test_a_use_counts_from_when_it_was_made_not_from_when_it_ended() -> None:
    cache = RadixCache(100, 4)
    first, second = cached(cache, Words("a")), cached(cache, Words("b"))
    cache.lock(first)
    cache.lock(second)
    earlier, later = cache.now(), cache.now()
    cache.unlock(second, later)
    cache.unlock(first, earlier)
    cache.evict(1)
    assert cache.matched_pages(Words("a"), 1) == 0
    assert cache.matched_pages(Words("b"), 1) == 1


def test_a_user_keeps_its_place_when_its_edge_is_split() -> None:
    cache = RadixCache(100, 4)
    node = cached(cache, Words("a b c d"))
    cache.lock(node)
    _, upper = cache.match(Words("a b x"), 3)
    assert (upper.low, upper.high, upper.locks) == (0, 2, 1)
    assert (node.low, node.high, node.locks) == (2, 4, 1)
    assert cache.evictable == 0
    cache.unlock(node, cache.now())
    assert cache.evictable == 16


def test_decoded_pages_prolong_the_node_of_their_only_user() -> None:
    cache = RadixCache(100, 1)
    text = Words("a b")
    node, _ = cache.put(cache.root, text, 1, by_page=True)
    cache.lock(node)
    longer, present = cache.put(node, text, 50, by_page=True)
    assert longer is node and node.pages == 50 and present == 0
    assert cache.evictable == 0


def test_putting_what_is_there_says_so() -> None:
    cache = RadixCache(100, 4)
    cached(cache, Words("a b c"))
    _, present = cache.put(cache.root, Words("a b x"), 3, by_page=False)
    assert present == 2
    assert cache.matched_pages(Words("a b x"), 3) == 3


def test_a_round_begins_with_uses_in_order_of_place() -> None:
    cache = RadixCache(100, 4)
    last_of_the_round_before = cache.now()
    cache.round = 1
    stamps = [last_of_the_round_before, cache.stamp_before(1, 3), cache.stamp_before(1, 9), cache.now()]
    assert stamps == sorted(stamps) and len(set(stamps)) == 4
