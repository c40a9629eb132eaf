"""What happens to the token slots of one request (`spec 05, 5`).

Slots are counted, not numbered. Whose they are follows from how they came to a sequence: the path it matched
and the pages it put into the tree are the tree's; its duplicate pages and what lies behind its stored pages are
private.
"""

from __future__ import annotations

from dynamo_sim.engine.sglang.sequence import SglangSequence
from dynamo_sim.kv.kv_events import PageCopies
from dynamo_sim.kv.radix_cache import Node, RadixCache


def begin(cache: RadixCache, sequence: SglangSequence, tokens: int) -> int | None:
    """Take slots for the first ``tokens`` tokens of a sequence that has none.

    Returns:
        How many of them were cached, or None when slots are missing: then nothing was taken, but what was
        found is refreshed all the same.
    """
    pages, node = cache.match(sequence, tokens // cache.page_tokens)
    reused = pages * cache.page_tokens
    if not cache.take(tokens - reused):
        return None
    cache.lock(node)
    sequence.last_node = node
    sequence.allocated_tokens = tokens
    sequence.published_pages = pages
    if cache.copies is not None:
        _publish(cache.copies, sequence, tokens // cache.page_tokens)
    return reused


def extend(cache: RadixCache, sequence: SglangSequence, tokens: int) -> int | None:
    """Take slots up to the first ``tokens`` tokens of a sequence that has some; the tree is not asked.

    Returns:
        How many it had before, or None when slots are missing.
    """
    before = sequence.allocated_tokens
    if not cache.take(tokens - before):
        return None
    sequence.allocated_tokens = tokens
    if cache.copies is not None:
        _publish(cache.copies, sequence, tokens // cache.page_tokens)
    return before


def reserve(cache: RadixCache, sequence: SglangSequence) -> int | None:
    """Set slots aside for a prompt whose KV is computed elsewhere, and lock what is cached of it (`spec 05, 11`).

    Returns:
        How many slots were set aside, for whole pages; None when there are not that many. What was found is refreshed
        all the same.
    """
    page, prompt = cache.page_tokens, sequence.prompt_tokens
    pages, node = cache.match(sequence, prompt // page)
    cache.lock(node)
    missing = (-(-prompt // page) - pages) * page
    if missing > cache.available:
        cache.unlock(node, 0)
        return None
    if missing > cache.free:
        cache.evict(missing - cache.free)
    cache.take(missing)
    sequence.last_node = node
    sequence.allocated_tokens = prompt
    sequence.published_pages = pages
    return missing


def activate(cache: RadixCache, sequence: SglangSequence) -> int:
    """The KV that `reserve` was called for has come: its whole pages can be found from now on.

    Returns:
        Slots that are free again, since the last page is not full.
    """
    surplus = -sequence.prompt_tokens % cache.page_tokens
    cache.give_back(surplus)
    store(cache, sequence, sequence.prompt_tokens // cache.page_tokens, cache.now())
    return surplus


def drop(cache: RadixCache, sequence: SglangSequence, tokens: int) -> None:
    """A sequence that has slots for ``tokens`` tokens goes before its end; what it has in the tree stays there."""
    node = sequence.last_node
    if node is None:
        return
    cache.give_back(tokens - node.high * cache.page_tokens)
    _give_back_duplicates(cache, sequence)
    if cache.copies is not None:
        cache.copies.removed(sequence.names[node.high : sequence.published_pages])
    cache.unlock(node, sequence.last_use)


def store(cache: RadixCache, sequence: SglangSequence, pages: int, stamp: int, by_page: bool = False) -> None:
    """Put the first ``pages`` pages of a sequence into the tree and lock the path to their end.

    Args:
        by_page: whether the pages were stored one by one, the last of them at ``stamp``.
    """
    if pages <= sequence.stored_pages:
        return
    before = sequence.last_node
    assert before is not None
    node = _put(cache, before, sequence, pages, by_page)
    cache.lock(node, above=before)
    sequence.last_node = node
    sequence.stored_pages = pages
    sequence.last_use = stamp


def release(cache: RadixCache, sequence: SglangSequence, by_page: bool) -> None:
    """A sequence has ended: its whole pages stay in the tree, everything else it holds becomes free.

    Args:
        by_page: whether the pages since the latest store were stored one by one.
    """
    page = cache.page_tokens
    tokens = sequence.prompt_tokens + sequence.generated
    pages = tokens // page
    before = sequence.last_node
    assert before is not None
    cache.give_back(tokens - pages * page)
    if pages:
        stamp = cache.now()
        node = _put(cache, before, sequence, pages, by_page)
        _give_back_duplicates(cache, sequence)
        cache.refresh(node, before, stamp)
        cache.unlock(before, stamp)
    else:
        cache.unlock(before, 0)


def _give_back_duplicates(cache: RadixCache, sequence: SglangSequence) -> None:
    """Make the slots of pages free that the tree had already."""
    if not sequence.duplicates:
        return
    for first, last in sequence.duplicates:
        cache.give_back((last - first) * cache.page_tokens)
    if cache.copies is not None:
        names = sequence.names
        cache.copies.removed(name for first, last in sequence.duplicates for name in names[first:last])


def retract(cache: RadixCache, sequence: SglangSequence) -> None:
    """Take a running sequence everything but its tokens; what it has stored stays in the tree.

    Two faults of the reference are in here (`spec 05, 12`): a sequence that began with a hit and has stored
    nothing yet also gives back the slots of the tree it had matched, and the slots of its duplicate pages are
    lost. After the first one two owners have the same slot numbers. Should such a slot be taken for the very
    page the tree holds in it, the reference takes the two for one; here that page counts as a duplicate.
    """
    node = sequence.last_node
    assert node is not None
    cache.give_back(sequence.tokens - sequence.stored_pages * cache.page_tokens)
    if cache.copies is not None:
        cache.copies.removed(sequence.names[sequence.stored_pages : sequence.published_pages])
    cache.unlock(node, sequence.last_use)
    sequence.last_node = None
    sequence.allocated_tokens = sequence.stored_pages = sequence.published_pages = sequence.last_use = 0
    sequence.duplicates = None
    sequence.is_new = True


def _put(cache: RadixCache, above: Node, sequence: SglangSequence, pages: int, by_page: bool) -> Node:
    """Make the first ``pages`` pages of a sequence cached, and note those below ``above`` that were there already.

    Returns:
        The node at their end.
    """
    if cache.copies is not None:
        _publish(cache.copies, sequence, pages)
    depth = above.high
    node, present = cache.put(above, sequence, pages, by_page)
    if present:
        if sequence.duplicates is None:
            sequence.duplicates = []
        sequence.duplicates.append((depth, depth + present))
    return node


def _publish(copies: PageCopies, sequence: SglangSequence, pages: int) -> None:
    """Publish those of the first ``pages`` pages of a sequence that were not published before."""
    if pages > sequence.published_pages:
        copies.stored(sequence.names, sequence.published_pages, pages)
        sequence.published_pages = pages
