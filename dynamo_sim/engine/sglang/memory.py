"""What happens to the token slots of one request (`spec 05, 5`).

Slots are counted, not numbered. Whose they are follows from how they came to a sequence: the path it matched
and the pages it put into the tree are the tree's; its duplicate pages and what lies behind its kept pages are
its own.
"""

from __future__ import annotations

from dynamo_sim.engine.sglang.sequence import SglangSequence
from dynamo_sim.kv.radix_cache import Node, RadixCache


def begin(cache: RadixCache, sequence: SglangSequence, tokens: int) -> int | None:
    """Take slots for the first ``tokens`` tokens of a sequence that has none.

    Returns:
        How many of them were cached, or None when slots are missing: then nothing was taken, but what was
        found is refreshed all the same.
    """
    pages, node = cache.match(sequence, tokens // cache.page_tokens)
    reused = pages * cache.page_tokens
    if tokens - reused > cache.free:
        return None
    cache.free -= tokens - reused
    cache.lock(node)
    sequence.anchor = node
    sequence.have = tokens
    sequence.announced_pages = pages
    _announce(cache, sequence, tokens)
    return reused


def extend(cache: RadixCache, sequence: SglangSequence, tokens: int) -> int | None:
    """Take slots up to the first ``tokens`` tokens of a sequence that has some; the tree is not asked.

    Returns:
        How many it had before, or None when slots are missing.
    """
    had = sequence.have
    if tokens - had > cache.free:
        return None
    cache.free -= tokens - had
    sequence.have = tokens
    _announce(cache, sequence, tokens)
    return had


def keep(cache: RadixCache, sequence: SglangSequence, pages: int, stamp: int, by_page: bool = False) -> None:
    """Put the first ``pages`` pages of a sequence into the tree and make their end its anchor.

    Args:
        by_page: whether the pages were kept one by one, the last of them at ``stamp``.
    """
    if pages <= sequence.kept_pages:
        return
    anchor = sequence.anchor
    assert anchor is not None
    node = _put(cache, anchor, sequence, pages, by_page)
    cache.lock(node, above=anchor)
    sequence.anchor = node
    sequence.kept_pages = pages
    sequence.touched = stamp


def release(cache: RadixCache, sequence: SglangSequence, by_page: bool) -> None:
    """A sequence has ended: its whole pages stay in the tree, everything else it holds becomes free.

    Args:
        by_page: whether the pages since the last keep were kept one by one.
    """
    page = cache.page_tokens
    tokens = sequence.tokens
    pages = tokens // page
    anchor = sequence.anchor
    assert anchor is not None
    cache.free += tokens - pages * page
    if pages:
        stamp = cache.now()
        node = _put(cache, anchor, sequence, pages, by_page)
        for first, last in sequence.duplicates:
            cache.free += (last - first) * page
        if cache.copies is not None:
            names = sequence.names
            cache.copies.removed(name for first, last in sequence.duplicates for name in names[first:last])
        cache.refresh(node, anchor, stamp)
        cache.unlock(anchor, stamp)
    else:
        cache.unlock(anchor, 0)
    forget(sequence)


def retract(cache: RadixCache, sequence: SglangSequence) -> None:
    """Take a running sequence everything but its tokens; what it has kept stays in the tree.

    Two faults of the reference are in here (`spec 05, 12`): a sequence that began with a hit and has kept
    nothing yet also gives back the slots of the tree it had matched, and the slots of its duplicate pages are
    lost. After the first one two owners have the same slot numbers. Should such a slot be taken for the very
    page the tree holds in it, the reference takes the two for one; here that page counts as a duplicate.
    """
    anchor = sequence.anchor
    assert anchor is not None
    cache.free += sequence.tokens - sequence.kept_pages * cache.page_tokens
    if cache.copies is not None:
        cache.copies.removed(sequence.names[sequence.kept_pages : sequence.announced_pages])
    cache.unlock(anchor, sequence.touched)
    forget(sequence)


def forget(sequence: SglangSequence) -> None:
    """Make a sequence one that holds nothing."""
    sequence.anchor = None
    sequence.have = sequence.kept_pages = sequence.announced_pages = sequence.touched = 0
    sequence.duplicates.clear()
    sequence.fresh = True


def _put(cache: RadixCache, anchor: Node, sequence: SglangSequence, pages: int, by_page: bool) -> Node:
    """Make the first ``pages`` pages of a sequence cached below its anchor, and note those that were there already.

    Returns:
        The node at their end.
    """
    _announce(cache, sequence, pages * cache.page_tokens)
    depth = anchor.high
    node, present = cache.put(anchor, sequence, pages, by_page)
    if present:
        sequence.duplicates.append((depth, depth + present))
    return node


def _announce(cache: RadixCache, sequence: SglangSequence, tokens: int) -> None:
    """Tell of the whole pages among the first ``tokens`` tokens of a sequence that nobody was told of."""
    pages = tokens // cache.page_tokens
    if cache.copies is not None and pages > sequence.announced_pages:
        cache.copies.stored(sequence.names, sequence.announced_pages, pages)
        sequence.announced_pages = pages
