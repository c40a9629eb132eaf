"""The running requests of an SGLang-style worker."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_sim.engine.lockstep import LockstepGroup
from dynamo_sim.engine.sglang.sequence import SglangSequence

NEVER = 1 << 62


class RunningBatch:
    """Requests that decode, in running order, and the sums over them that a pass asks for.

    All of them gain one token a pass, so they form a `LockstepGroup` (speculative bursts are different, see `leap`).
    A request that wants no tokens takes part without ever gaining any.

    Args:
        page_tokens: tokens per page.
        clip_tokens: most output tokens reserved for one request.

    Attributes:
        members: all of them by their number of entry, in running order.
        group: those that gain tokens.
        reserve_tokens: sum of the tokens to come, each member's at most ``clip_tokens``.
        page_by_page: members whose pages have to be stored as they fill, by entry.
        clipping: how many members will have ``clip_tokens`` to come after which pass, those with more.
        falling: members with at most ``clip_tokens`` to come, each of which takes 1 a pass off the reserve.
    """

    def __init__(self, page_tokens: int, clip_tokens: int) -> None:
        self.page_tokens = page_tokens
        self.clip_tokens = clip_tokens
        self.members: dict[int, SglangSequence] = {}
        self.group: LockstepGroup[SglangSequence] = LockstepGroup(page_tokens)
        self.reserve_tokens = 0
        self.page_by_page: dict[int, SglangSequence] = {}
        self.falling = 0
        self.clipping: dict[int, int] = {}
        self._entries = 0
        # Of members that want no tokens: sums of their lengths, of the pages those need, and of their squares.
        self._still_tokens = self._still_pages = self._still_squares = 0

    # ------------------------------------------------------------ who is in it

    def add(self, sequence: SglangSequence) -> None:
        """Let a sequence join at the back."""
        self._entries += 1
        sequence.entry = self._entries
        self.members[sequence.entry] = sequence
        if sequence.page_by_page:
            self.page_by_page[sequence.entry] = sequence
        self._join(sequence)

    def remove(self, sequence: SglangSequence) -> None:
        """Let a member go, wherever it stands, with ``generated`` up to date."""
        self._leave(sequence)
        del self.members[sequence.entry]
        if sequence.page_by_page:
            del self.page_by_page[sequence.entry]

    def leap(self, sequence: SglangSequence, tokens: int) -> None:
        """Give one member ``tokens`` tokens without a pass: in bursts every member gets its own number."""
        self._leave(sequence)
        sequence.generated += tokens
        self._join(sequence)

    def advance(self, passes: int) -> None:
        """Give every growing member a token in each of ``passes`` passes, which none may outlive."""
        group = self.group
        if self.clipping:
            for number in range(group.passes, group.passes + passes):
                self.falling += self.clipping.pop(number, 0)
                self.reserve_tokens -= self.falling
            self.falling += self.clipping.pop(group.passes + passes, 0)
        else:
            self.reserve_tokens -= passes * self.falling
        group.advance(passes, group.openings_within(passes))

    def _join(self, sequence: SglangSequence) -> None:
        if not sequence.max_output_tokens:
            self._count_still(sequence, 1)
            return
        self.group.join((sequence,))
        left = sequence.max_output_tokens - sequence.generated
        if left <= self.clip_tokens:
            self.reserve_tokens += left
            self.falling += 1
        else:
            self.reserve_tokens += self.clip_tokens
            turn = self.group.passes + left - self.clip_tokens
            self.clipping[turn] = self.clipping.get(turn, 0) + 1

    def _leave(self, sequence: SglangSequence) -> None:
        if not sequence.max_output_tokens:
            self._count_still(sequence, -1)
            return
        self.group.leave((sequence,))
        left = sequence.max_output_tokens - sequence.generated
        if left <= self.clip_tokens:
            self.reserve_tokens -= left
            self.falling -= 1
        else:
            self.reserve_tokens -= self.clip_tokens
            turn = self.group.passes + left - self.clip_tokens
            self.clipping[turn] -= 1
            if not self.clipping[turn]:
                del self.clipping[turn]

    def _count_still(self, sequence: SglangSequence, sign: int) -> None:
        length = sequence.prompt_tokens
        self._still_tokens += sign * length
        self._still_pages += sign * -(-length // self.page_tokens)
        self._still_squares += sign * length * length

    # ------------------------------------------------------------ questions

    @property
    def growing(self) -> int:
        """Members that gain tokens."""
        return self.group.count

    @property
    def tokens(self) -> int:
        """Sum of the lengths of all members."""
        return self.group.tokens + self._still_tokens

    @property
    def slack_tokens(self) -> int:
        """Slots missing to whole pages, over all members."""
        pages = self.group.blocks + self._still_pages
        return pages * self.page_tokens - self.group.tokens - self._still_tokens

    @property
    def squared_tokens(self) -> int:
        """Sum of the squares of the members' lengths."""
        return self.group.squared_tokens + self._still_squares

    @property
    def is_mixed(self) -> bool:
        """Whether some members grow and some do not."""
        return 0 < self.group.count < len(self.members)

    def generated(self, sequence: SglangSequence) -> int:
        """What a member has generated so far."""
        return self.group.generated(sequence) if sequence.max_output_tokens else 0

    def reserve(self, ratio: float) -> float:
        """Tokens set aside for outputs to come: the float sum in running order (`spec 05, 8`)."""
        total = 0.0
        clip, now = self.clip_tokens, self.group.passes
        for sequence in self.members.values():
            left = sequence.max_output_tokens - (now - sequence.origin) if sequence.max_output_tokens else 0
            total += float(min(left, clip)) * ratio
        return total

    def victim(self) -> SglangSequence:
        """Who is retracted first: who has generated least, the first in running order among equals."""
        now = self.group.passes
        members: Iterable[SglangSequence] = self.members.values()
        return max(members, key=lambda s: s.origin if s.max_output_tokens else now)

    def next_page_to_store(self) -> int:
        """The pass in which the next page fills that has to be stored at once; `NEVER` if there is none."""
        if not self.page_by_page:
            return NEVER
        now, page = self.group.passes, self.page_tokens
        lengths = (self.group.length(s) for s in self.page_by_page.values() if s.max_output_tokens)
        return min((now + page - length % page for length in lengths), default=NEVER)
