"""The block pool of a vLLM-style worker word for word: block by block (`spec 03`)."""

from __future__ import annotations

from typing import Any

Block = tuple[Any, ...]
"""A full block: the tokens of the sequence from its first one up to the end of the block."""


class PlainBlocks:
    """The blocks of one sequence: ``full`` of them have their identity, ``held`` of them are held."""

    def __init__(self) -> None:
        self.full = 0
        self.held = 0


class PlainPool:
    """Slots are counted; full blocks have owners, or lie in the inactive set with a tick."""

    def __init__(self, blocks: int, size: int, caching: bool) -> None:
        self.size = size
        self.total = self.free = blocks
        self.caching = caching
        self.owners: dict[Block, int] = {}
        self.inactive: dict[Block, int] = {}  # block -> tick
        self.ticks = 0
        self.events: list[tuple[str, Block | None, list[Block]]] = []

    @property
    def active(self) -> int:
        return self.total - self.free - len(self.inactive)

    def block(self, tokens: list[Any], index: int) -> Block:
        return tuple(tokens[: (index + 1) * self.size])

    def cached(self, tokens: list[Any], full: int) -> tuple[int, int]:
        """Blocks of the longest cached prefix, and how many of them somebody holds."""
        count = held = 0
        while self.caching and count < full:
            block = self.block(tokens, count)
            if block not in self.owners and block not in self.inactive:
                break
            count += 1
            held += block in self.owners
        return count, held

    def take(self, tokens: list[Any], full: int, first: int, last: int) -> bool:
        """Take the blocks ``first <= i < last`` of a sequence with ``full`` full blocks, all or none."""
        hits, returned, new = [], [], []
        for index in range(first, last):
            block = self.block(tokens, index) if index < full else None
            if block is not None and block in self.inactive:
                del self.inactive[block]
                returned.append(block)
                hits.append(block)
            elif block is not None and block in self.owners:
                hits.append(block)
            else:
                new.append(block)
        if self.free + len(self.inactive) < len(new):
            for block in returned:
                self.enter(block)
            return False
        victims = self.make_free(len(new))
        self.free -= len(new)
        for block in hits:
            self.owners[block] = self.owners.get(block, 0) + 1
        for block in new:
            if block is not None:
                self.owners[block] = 1
        self.announce_stored(
            tokens, [i for i in range(first, min(full, last)) if self.block(tokens, i) in new]
        )
        self.announce_removed(victims)
        return True

    def open_partial(self) -> bool:
        if not self.free and not self.inactive:
            return False
        self.announce_removed(self.make_free(1))
        self.free -= 1
        return True

    def reserve(self, count: int) -> bool:
        if self.free + len(self.inactive) < count:
            return False
        self.announce_removed(self.make_free(count))
        self.free -= count
        return True

    def make_free(self, count: int) -> list[Block]:
        victims = []
        while self.free < count:
            parents = {block[: -self.size] for block in self.inactive}
            victim = min(
                (b for b in self.inactive if b not in parents or not self.caching),
                key=self.inactive.__getitem__,
            )
            del self.inactive[victim]
            self.free += 1
            victims.append(victim)
        return victims

    def enter(self, block: Block) -> None:
        self.inactive[block] = self.ticks
        self.ticks += 1

    def release(self, tokens: list[Any], full: int, held: int) -> None:
        for index in reversed(range(held)):
            if index >= full:
                self.free += 1
                continue
            block = self.block(tokens, index)
            self.owners[block] -= 1
            if not self.owners[block]:
                del self.owners[block]
                self.enter(block)

    def promote(self, tokens: list[Any], index: int) -> None:
        block = self.block(tokens, index)
        if block in self.owners:
            self.owners[block] += 1
            self.free += 1
        elif block in self.inactive:
            del self.inactive[block]
            self.owners[block] = 1
            self.free += 1
        else:
            self.owners[block] = 1
            self.announce_stored(tokens, [index])

    def announce_stored(self, tokens: list[Any], indices: list[int]) -> None:
        while indices and self.caching:
            run = 1
            while run < len(indices) and indices[run] == indices[0] + run:
                run += 1
            parent = self.block(tokens, indices[0] - 1) if indices[0] else None
            self.events.append(("stored", parent, [self.block(tokens, i) for i in indices[:run]]))
            indices = indices[run:]

    def announce_removed(self, victims: list[Block]) -> None:
        if victims and self.caching:
            self.events.append(("removed", None, victims))
