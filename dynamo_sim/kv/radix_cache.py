"""The prefix tree of an SGLang-style worker, and the count of its free token slots (`spec 05, 3 and 4`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush, heapreplace
from typing import Protocol

from dynamo_sim.kv.kv_events import PageCopies

STAMP_BITS = 40
"""A stamp is a round number above this many bits for the place within the round."""


class Text(Protocol):
    """Tokens as pages. Equal names mean equal prefixes; pages without one are unlike any other."""

    names: Sequence[int]
    """Names of the pages others can share, from the first page on."""


class Node:
    """An edge of the tree with the node at its end: pages ``low <= i < high`` of a text, from the root on.

    With ``by_page`` it stands for a chain of nodes of one page each that have one stamp and the same locks:
    decoded tokens enter the tree page by page. Such a chain is evicted from its end, and a match refreshes
    the pages it covers; any other edge is evicted as a whole and refreshed only by a match of all of it.
    """

    __slots__ = ("by_page", "children", "high", "locks", "low", "parent", "queued", "serial", "stamp", "text")

    def __init__(
        self,
        parent: Node | None,
        text: Text | None,
        low: int,
        high: int,
        by_page: bool,
        stamp: int,
        serial: int,
    ) -> None:
        self.parent = parent
        self.text = text
        self.low = low
        self.high = high
        self.by_page = by_page
        self.stamp = stamp
        self.serial = serial
        self.locks = 0
        self.children: dict[int | Text, Node] = {}
        self.queued = False

    @property
    def pages(self) -> int:
        """Length of the edge."""
        return self.high - self.low


class RadixCache:
    """Which prefixes are cached, which of them are in use, and which go first.

    Whoever uses a prefix locks its path. Stamps grow with use. A locked node cannot go, so its users tell
    what they did to its stamp when they unlock it.

    Args:
        total_tokens: slots of the worker.
        page_tokens: tokens per page.

    Attributes:
        total_tokens: slots of the worker.
        free: slots that hold nothing.
        evictable: tokens in nodes nobody locks.
        round: number of the round stamps are given in (see `now` and `stamp_before`).
        changes: grows with every change of what a match can find.
        copies: copies of each page, counted while KV events are published.
    """

    def __init__(self, total_tokens: int, page_tokens: int) -> None:
        self.page_tokens = page_tokens
        self.total_tokens = total_tokens
        self.free = total_tokens
        self.evictable = 0
        self.round = 0
        self.changes = 0
        self.copies: PageCopies | None = None
        self.root = Node(None, None, 0, 0, False, 0, 0)
        self._ticks = 0
        self._serial = 0
        self._leaves: list[tuple[int, int, Node]] = []  # unlocked ones, by a stamp they have or had

    def now(self) -> int:
        """A stamp above all earlier ones of this round, and above every `stamp_before` of it."""
        self._ticks += 1
        return ((2 * self.round + 1) << STAMP_BITS) + self._ticks

    @staticmethod
    def stamp_before(round_number: int, place: int) -> int:
        """The stamp of a use at the beginning of a round; uses there are in order of ``place``."""
        return ((2 * round_number) << STAMP_BITS) + place

    # ------------------------------------------------------------ slots

    def take(self, tokens: int) -> bool:
        """Take free slots for ``tokens`` tokens; False, and nothing changed, when there are not that many."""
        if tokens > self.free:
            return False
        self.free -= tokens
        return True

    def give_back(self, tokens: int) -> None:
        """Make the slots of ``tokens`` tokens free that are not in the tree."""
        self.free += tokens

    # ------------------------------------------------------------ questions

    @property
    def available(self) -> int:
        """Slots that can be had, if need be by evictions."""
        return self.free + self.evictable

    def matched_pages(self, text: Text, pages: int) -> int:
        """Pages of the longest cached prefix of the first ``pages`` pages of a text. Refreshes nothing."""
        node, depth = self.root, 0
        names = text.names
        named = len(names)
        while depth < pages:
            child = node.children.get(names[depth] if depth < named else text)
            if child is None:
                break
            high = child.high
            if high - depth > 1:
                depth = _agreement(child, text, min(high, pages))
                if depth < high:
                    break
            else:
                depth = high  # one page, which is known to agree
            node = child
        return depth

    def match(self, text: Text, pages: int) -> tuple[int, Node]:
        """The longest cached prefix of the first ``pages`` pages of a text: its length in pages and its node.

        What it covers is refreshed; an edge it ends within is split there.
        """
        node, depth = self.root, 0
        stamp = self.now()
        names = text.names
        named = len(names)
        while depth < pages:
            child = node.children.get(names[depth] if depth < named else text)
            if child is None:
                break
            depth = _agreement(child, text, min(child.high, pages))
            if depth < child.high:
                node = self._split(child, depth)
                if node.by_page:
                    node.stamp = stamp
                break
            node = child
            node.stamp = stamp
        return depth, node

    # ------------------------------------------------------------ use

    def lock(self, node: Node, above: Node | None = None) -> None:
        """Begin to use a node and its ancestors, those from ``above`` upwards excepted."""
        if above is None:
            above = self.root
        page = self.page_tokens
        while node is not above:
            if not node.locks:
                self.evictable -= (node.high - node.low) * page
            node.locks += 1
            assert node.parent is not None
            node = node.parent

    def unlock(self, node: Node, stamp: int) -> None:
        """End the use of a node and its ancestors, that was last made at ``stamp``."""
        root, page = self.root, self.page_tokens
        while node is not root:
            if stamp > node.stamp:
                node.stamp = stamp
            node.locks -= 1
            if not node.locks:
                self.evictable += (node.high - node.low) * page
                if not (node.children or node.queued):
                    self._enqueue(node)
            assert node.parent is not None
            node = node.parent

    def put(self, node: Node, text: Text, pages: int, by_page: bool) -> tuple[Node, int]:
        """Make the first ``pages`` pages of a text cached, below a node of its path the caller uses.

        New pages are not locked, unless they prolong a node only the caller uses.

        Args:
            by_page: whether the pages enter one at a time; several of them only if none is there.

        Returns:
            The node at their end, and how many pages below the given node were there already.
        """
        # Go down as far as others have put the same pages. No stamp is given on the way: the caller has the whole path
        # locked afterwards, and says what it did to the stamps when it unlocks it.
        depth = first = node.high
        names = text.names
        named = len(names)
        while depth < pages:
            child = node.children.get(names[depth] if depth < named else text)
            if child is None:
                break
            depth = _agreement(child, text, min(child.high, pages))
            if depth < child.high:
                node = self._split(child, depth)
                break
            node = child
        present = depth - first
        if depth < pages:
            self.changes += 1
            by_page = by_page or pages - depth == 1
            # Decoded pages of one request make a chain, which is one node that grows as long as nobody else has
            # locked it or branched off. An edge that entered at once may not grow: it is evicted at once.
            if (
                by_page
                and node.by_page
                and node.locks == 1
                and not present
                and node.text is text
                and not node.children
            ):
                node.high = pages
            else:
                self._serial += 1
                leaf = Node(node, text, depth, pages, by_page, 0, self._serial)
                node.children[names[depth] if depth < named else text] = leaf
                self.evictable += (pages - depth) * self.page_tokens
                node = leaf
        return node, present

    def refresh(self, node: Node, above: Node, stamp: int) -> None:
        """Note a use of unlocked nodes, from ``node`` up to but not including ``above``."""
        while node is not above:
            node.stamp = stamp
            if not (node.locks or node.children or node.queued):
                self._enqueue(node)
            assert node.parent is not None
            node = node.parent

    def evict(self, tokens: int) -> None:
        """Free at least ``tokens`` slots, least recently used leaves first, as far as there are any."""
        page, leaves = self.page_tokens, self._leaves
        lost: list[int] = []
        if tokens > 0:
            self.changes += 1
        while tokens > 0 and leaves:
            stamp, _, node = leaves[0]
            if node.locks or node.children:
                heappop(leaves)
                node.queued = False
                continue
            if node.stamp != stamp:
                heapreplace(leaves, (node.stamp, node.serial, node))
                continue
            gone = node.high - node.low
            some = node.by_page and (gone - 1) * page >= tokens
            if some:
                gone = -(-tokens // page)
            if self.copies is not None:
                assert node.text is not None
                names = node.text.names[node.high - gone : node.high]
                lost += names[::-1] if node.by_page else names
            if some:
                node.high -= gone
            else:
                heappop(leaves)
                node.queued = False
                self._remove(node)
            self.free += gone * page
            self.evictable -= gone * page
            tokens -= gone * page
        if lost and self.copies is not None:
            self.copies.removed(lost)

    # ------------------------------------------------------------ inside

    def _enqueue(self, leaf: Node) -> None:
        leaf.queued = True
        heappush(self._leaves, (leaf.stamp, leaf.serial, leaf))

    def _remove(self, leaf: Node) -> None:
        parent = leaf.parent
        assert parent is not None and leaf.text is not None
        del parent.children[_key(leaf.text, leaf.low)]
        if parent is not self.root and not (parent.children or parent.locks or parent.queued):
            self._enqueue(parent)

    def _split(self, node: Node, at: int) -> Node:
        """Cut an edge before page ``at``: the upper part is new, the node stays the end of the lower one."""
        parent, text = node.parent, node.text
        assert parent is not None and text is not None
        self._serial += 1
        upper = Node(parent, text, node.low, at, node.by_page, node.stamp, self._serial)
        upper.locks = node.locks
        parent.children[_key(text, node.low)] = upper
        node.parent = upper
        node.low = at
        upper.children[_key(text, at)] = node
        return upper

    # ------------------------------------------------------------ for tests

    def check(self, locked: Iterable[Node]) -> None:
        """Check that the books agree with the tree.

        Args:
            locked: the node that each user of the tree locks.

        Raises:
            AssertionError: they do not agree.
        """
        users: Counter[Node] = Counter()
        for node in locked:
            while node is not self.root:
                users[node] += 1
                assert node.parent is not None
                node = node.parent
        evictable = 0
        todo = [self.root]
        while todo:
            node = todo.pop()
            for key, child in node.children.items():
                assert child.parent is node and node.high == child.low < child.high
                assert child.text is not None and key == _key(child.text, child.low)
                assert child.locks == users.pop(child, 0)
                assert child.locks or child.children or child.queued
                evictable += 0 if child.locks else child.pages * self.page_tokens
                todo.append(child)
        assert not users
        assert self.evictable == evictable and self.free >= 0


def _key(text: Text, page: int) -> int | Text:
    names = text.names
    return names[page] if page < len(names) else text


def _agreement(node: Node, text: Text, stop: int) -> int:
    """Up to which page, at most ``stop``, a text agrees with an edge whose first page it has."""
    other = node.text
    assert other is not None
    if other is text:
        return stop
    mine, theirs = text.names, other.names
    last = min(stop, len(mine), len(theirs))
    if mine[last - 1] == theirs[last - 1]:
        return last
    low = node.low + 1  # the first page agrees, page `last - 1` does not: equal names mean equal prefixes
    while low < last - 1:
        middle = (low + last) // 2
        if mine[middle - 1] == theirs[middle - 1]:
            low = middle
        else:
            last = middle
    return low
