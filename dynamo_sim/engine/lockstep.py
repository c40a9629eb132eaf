"""Decoding sequences that each gain one token a pass, handled as one group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar


class Member(Protocol):
    """What a group has to know of a sequence.

    Attributes:
        prompt_tokens, max_output_tokens: its lengths.
        generated: tokens generated so far. Stale while it is a member.
        origin: group pass in which ``generated`` was 0. Meaningful while it is a member.
    """

    prompt_tokens: int
    max_output_tokens: int
    generated: int
    origin: int


M = TypeVar("M", bound=Member)


class LockstepGroup(Generic[M]):
    """The sequences of a worker that decode in step: a pass costs what changes in it, not what runs in it.

    Everything about a member follows from the pass number: it has generated ``passes - origin`` tokens, opens a block
    in the passes of one residue modulo the block size, and ends in a pass known from the start.

    Args:
        block_size: tokens per block or page.

    Attributes:
        passes: decode passes of the group so far.
        count: its members.
        tokens: sum of their lengths.
        blocks: sum of the blocks those need, each length rounded up.
        ending: members by the pass in which they generate their last token, each list in order of joining.
        openings: how many members open a block in the passes of each residue (pass modulo block size).
    """

    __slots__ = (
        "_offsets",
        "_squared_offsets",
        "block_size",
        "blocks",
        "count",
        "ending",
        "openings",
        "passes",
        "tokens",
    )

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.passes = 0
        self.count = 0
        self.tokens = 0
        self.blocks = 0
        self.ending: dict[int, list[M]] = {}
        self.openings = [0] * block_size
        # A member's length is its offset plus the pass number, so sums over lengths follow from sums over offsets.
        self._offsets = 0
        self._squared_offsets = 0

    # ------------------------------------------------------------ who is in it

    def join(self, members: Iterable[M]) -> None:
        """Let sequences join that have more tokens to generate."""
        now, size, openings, ending = self.passes, self.block_size, self.openings, self.ending
        for member in members:
            generated = member.generated
            length = member.prompt_tokens + generated
            origin = member.origin = now - generated
            self.count += 1
            self.tokens += length
            self.blocks += -(-length // size)
            offset = length - now
            self._offsets += offset
            self._squared_offsets += offset * offset
            openings[(1 - offset) % size] += 1
            end = origin + member.max_output_tokens
            if end in ending:
                ending[end].append(member)
            else:
                ending[end] = [member]

    def leave(self, members: Iterable[M]) -> None:
        """Let members go and bring their ``generated`` up to date."""
        now, size, openings = self.passes, self.block_size, self.openings
        for member in members:
            generated = member.generated = now - member.origin
            length = member.prompt_tokens + generated
            self.count -= 1
            self.tokens -= length
            self.blocks -= -(-length // size)
            offset = length - now
            self._offsets -= offset
            self._squared_offsets -= offset * offset
            openings[(1 - offset) % size] -= 1
            if generated < member.max_output_tokens:
                enders = self.ending[member.origin + member.max_output_tokens]
                enders.remove(member)
                if not enders:
                    del self.ending[member.origin + member.max_output_tokens]

    def pop_ended(self) -> list[M]:
        """Let those go that have generated their last tokens, in order of joining."""
        ended = self.ending.pop(self.passes, None)
        if ended is None:
            return []
        self.leave(ended)
        return ended

    def clear(self) -> None:
        """Let all members go; the caller has brought them up to date."""
        self.ending.clear()
        self.openings = [0] * self.block_size
        self.count = self.tokens = self.blocks = 0
        self._offsets = self._squared_offsets = 0

    # ------------------------------------------------------------ passes

    def advance(self, passes: int, opened_blocks: int) -> None:
        """Give every member a token in each of ``passes`` passes, in which `openings_within` so many blocks."""
        self.passes += passes
        self.tokens += passes * self.count
        self.blocks += opened_blocks

    def openings_within(self, passes: int) -> int:
        """Blocks opened in the next ``passes`` passes together, as long as nobody joins or leaves."""
        openings, size = self.openings, self.block_size
        first = (self.passes + 1) % size
        if passes == 1:
            return openings[first]
        if passes < size:
            opened = 0
        else:
            cycles, passes = divmod(passes, size)
            opened = cycles * self.count
        opened += sum(openings[first : first + passes])
        beyond = first + passes - size
        return opened + sum(openings[:beyond]) if beyond > 0 else opened

    def openings_of(self, passes: int) -> list[int]:
        """Blocks opened in each of the next ``passes`` passes, as long as nobody joins or leaves."""
        openings, size = self.openings, self.block_size
        first = (self.passes + 1) % size
        turns = openings[first : first + passes]
        while len(turns) < passes:
            turns += openings[: passes - len(turns)]
        return turns

    # ------------------------------------------------------------ questions

    def generated(self, member: M) -> int:
        """What a member has generated so far."""
        return self.passes - member.origin

    def length(self, member: M) -> int:
        """Prompt and generated tokens of a member."""
        return member.prompt_tokens + self.passes - member.origin

    @property
    def squared_tokens(self) -> int:
        """Sum of the squares of the members' lengths."""
        now = self.passes
        return self._squared_offsets + 2 * now * self._offsets + now * now * self.count
