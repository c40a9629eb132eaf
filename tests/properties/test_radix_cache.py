"""The prefix tree against a dictionary of prefixes (`spec 05, 4`)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_sim.kv.radix_cache import Node, RadixCache

PAGE = 4
TOTAL = 4000
Prefix = tuple[int, ...]


@dataclass
class Page:
    """The last page of a cached prefix; pages of one ``edge`` go together."""

    edge: int
    locks: int
    stamp: int


class Prefixes:
    """All cached prefixes, by their pages. Every use is stamped when it is made (`spec 05, 4`)."""

    def __init__(self) -> None:
        self.pages: dict[Prefix, Page] = {}
        self.free = TOTAL
        self._edges = count()
        self._stamps = count(1)

    def length(self, text: Prefix) -> int:
        return next((n for n in range(len(text)) if text[: n + 1] not in self.pages), len(text))

    def match(self, text: Prefix) -> int:
        found = self.length(text)
        stamp = next(self._stamps)
        upper = self._split(text[:found])
        for n in range(1, found + 1):
            page = self.pages[text[:n]]
            if page.edge != upper:
                page.stamp = stamp
        return found

    def _split(self, prefix: Prefix) -> int | None:
        """Let an edge that goes on behind ``prefix`` end there; the new upper edge, if one was split."""
        if not prefix:
            return None
        edge = self._edge(self.pages[prefix].edge)
        if all(len(p) <= len(prefix) for p in edge):
            return None
        upper = next(self._edges)
        for p in edge:
            if len(p) <= len(prefix):
                self.pages[p].edge = upper
        return upper

    def _edge(self, edge: int) -> list[Prefix]:
        return [p for p, page in self.pages.items() if page.edge == edge]

    def put(self, text: Prefix) -> int:
        """Insert and match: how much was there."""
        present = self.match(text)
        edge, stamp = next(self._edges), next(self._stamps)
        for n in range(present + 1, len(text) + 1):
            self.pages[text[:n]] = Page(edge, 0, stamp)
        for n in range(1, len(text) + 1):
            self.pages[text[:n]].stamp = stamp
        return present

    def lock(self, text: Prefix, change: int) -> None:
        for n in range(1, len(text) + 1):
            self.pages[text[:n]].locks += change

    @property
    def evictable(self) -> int:
        return PAGE * sum(page.locks == 0 for page in self.pages.values())

    def evict(self, tokens: int) -> None:
        while tokens > 0:
            unlocked = {page.edge for page in self.pages.values() if not page.locks}
            parents = ((self.pages[p[:-1]].edge, page.edge) for p, page in self.pages.items() if len(p) > 1)
            leaves = unlocked - {parent for parent, edge in parents if parent != edge}
            if not leaves:
                return
            oldest = min(leaves, key=lambda edge: self.pages[self._edge(edge)[0]].stamp)
            for p in self._edge(oldest):
                del self.pages[p]
                self.free += PAGE
                tokens -= PAGE


class Text:
    """Pages named by the prefix they end."""

    names_of: dict[Prefix, int] = {}  # noqa: RUF012

    def __init__(self, prefix: Prefix) -> None:
        self.names = [
            self.names_of.setdefault(prefix[: i + 1], len(self.names_of)) for i in range(len(prefix))
        ]


@dataclass
class User:
    text: Text
    prefix: Prefix
    last_node: Node
    held: int
    touched: int


def random_actions(draw: random.Random) -> Iterator[tuple[Any, ...]]:
    """Uses that overlap: few different pages, so that texts branch off everywhere."""
    for _ in range(150):
        what = draw.choice(["begin", "keep", "keep", "end", "evict"])
        if what == "begin":
            yield what, tuple(draw.choice([0, 0, 1]) for _ in range(draw.randint(1, 12)))
        elif what == "keep":
            yield what, draw.randrange(100), draw.randint(1, 5), draw.random() < 0.5
        elif what == "end":
            yield what, draw.randrange(100)
        else:
            yield what, draw.randint(1, 40)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_the_tree_answers_like_a_dictionary_of_prefixes(seed: int) -> None:
    tree, naive = RadixCache(TOTAL, PAGE), Prefixes()
    users: list[User] = []
    for action in random_actions(random.Random(seed)):
        match action:
            case ("begin", prefix):
                text = Text(prefix)
                assert tree.matched_pages(text, len(prefix)) == naive.length(prefix)
                held, last_node = tree.match(text, len(prefix))
                assert held == naive.match(prefix)
                tree.lock(last_node)
                naive.lock(prefix[:held], 1)
                users.append(User(text, prefix, last_node, held, 0))
            case ("keep", number, pages, one_by_one) if users:
                user = users[number % len(users)]
                target = min(user.held + pages, len(user.prefix))
                if target == user.held:
                    continue
                alone = naive.length(user.prefix) == user.held
                singly = range(user.held + 1, target + 1)
                puts = list(singly) if one_by_one else [target]
                present = sum(naive_keep(naive, user, end) for end in puts)
                there = 0
                for end in [target] if alone else puts:  # new pages may enter the tree together
                    node, found = tree.put(user.last_node, user.text, end, by_page=one_by_one)
                    tree.lock(node, above=user.last_node)
                    user.last_node, user.touched = node, tree.now()
                    there += found
                assert there == present
                assert tree.take((len(singly) - present) * PAGE)
                naive.free -= (len(singly) - present) * PAGE
            case ("end", number) if users:
                user = users.pop(number % len(users))
                tree.unlock(user.last_node, user.touched)
                naive.lock(user.prefix[: user.held], -1)
            case ("evict", tokens):
                tree.evict(tokens)
                naive.evict(tokens)
        assert (tree.free, tree.evictable) == (naive.free, naive.evictable)
        assert content(tree) == set(naive.pages)
        tree.check([user.last_node for user in users])


def naive_keep(naive: Prefixes, user: User, end: int) -> int:
    """Let a user put its first ``end`` pages and hold them: how many of the new ones were there."""
    if end <= user.held:
        return 0
    found = naive.put(user.prefix[:end])
    naive.lock(user.prefix[:end], 1)
    naive.lock(user.prefix[: user.held], -1)
    before, user.held = user.held, end
    return found - before


def content(tree: RadixCache) -> set[Prefix]:
    """The cached prefixes of a tree."""
    prefixes = {name: prefix for prefix, name in Text.names_of.items()}
    found: set[Prefix] = set()
    todo = list(tree.root.children.values())
    while todo:
        node = todo.pop()
        todo += node.children.values()
        assert node.text is not None and node.parent is not None
        assert node.parent.high == node.low < node.high
        assert node.parent is tree.root or node.parent.locks >= node.locks
        found.update(prefixes[node.text.names[page]] for page in range(node.low, node.high))
    return found
