"""The running requests of an SGLang-style worker."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_sim.engine.sglang.sequence import SglangSequence

NEVER = 1 << 62


class RunningBatch:
    """Requests that decode, in running order, and the sums over them that a pass asks for.

    All of them gain one token a pass (speculative bursts are different, see `leap`), so what a member has
    generated, when it fills a page and when it ends follow from the number of passes, and a pass costs what
    changes in it, not what runs in it. A request that wants no tokens takes part without ever gaining any.

    Args:
        page_tokens: tokens per page.
        clip_tokens: most output tokens reserved for one request.

    Attributes:
        members: all of them by their number of entry, in running order.
        passes: decode passes so far.
        growing: members that gain tokens.
        tokens: sum of the lengths of all members.
        pages: sum of the pages they need, each rounded up.
        reserve_tokens: sum of their tokens to come, each at most ``clip_tokens``.
        ending: growing members by the pass of their last token, in running order.
        watched: members whose pages have to be kept as they fill, by entry.
    """

    def __init__(self, page_tokens: int, clip_tokens: int) -> None:
        self.page_tokens = page_tokens
        self.clip_tokens = clip_tokens
        self.members: dict[int, SglangSequence] = {}
        self.passes = 0
        self.growing = 0
        self.tokens = 0
        self.pages = 0
        self.reserve_tokens = 0
        self.ending: dict[int, list[SglangSequence]] = {}
        self.watched: dict[int, SglangSequence] = {}
        # Growing members with at most `clip_tokens` to come, each of which takes 1 a pass off the reserve;
        # and how many will have that few after which pass.
        self.falling = 0
        self.clipping: dict[int, int] = {}
        self.openings: dict[int, int] = {}  # growing members by the residue (pass modulo page) of opening one
        self._entries = 0
        self._offsets = 0
        self._squared_offsets = 0
        self._still_squares = 0

    def __len__(self) -> int:
        return len(self.members)

    # ------------------------------------------------------------ who is in it

    def add(self, sequence: SglangSequence) -> None:
        """Let a sequence join at the back."""
        self._entries += 1
        sequence.entry = self._entries
        self.members[sequence.entry] = sequence
        if sequence.watched:
            self.watched[sequence.entry] = sequence
        sequence.origin = self.passes - sequence.generated
        self._count(sequence, 1)

    def remove(self, sequence: SglangSequence) -> None:
        """Let a member go, wherever it stands, with ``generated`` up to date."""
        sequence.generated = self.generated(sequence)
        del self.members[sequence.entry]
        if sequence.watched:
            del self.watched[sequence.entry]
        self._count(sequence, -1)

    def leap(self, sequence: SglangSequence, tokens: int) -> None:
        """Give one member ``tokens`` tokens without a pass: in bursts every member gets its own number."""
        sequence.generated = self.generated(sequence)
        self._count(sequence, -1)
        sequence.generated += tokens
        sequence.origin -= tokens
        self._count(sequence, 1)

    def advance(self, passes: int) -> None:
        """Give every growing member a token in each of ``passes`` passes, which none may outlive."""
        self.pages += self.openings_within(passes)
        self.tokens += passes * self.growing
        if self.clipping:
            for number in range(self.passes, self.passes + passes):
                self.falling += self.clipping.pop(number, 0)
                self.reserve_tokens -= self.falling
            self.falling += self.clipping.pop(self.passes + passes, 0)
        else:
            self.reserve_tokens -= passes * self.falling
        self.passes += passes

    def _count(self, sequence: SglangSequence, sign: int) -> None:
        length = sequence.prompt_tokens + sequence.generated
        page = self.page_tokens
        self.tokens += sign * length
        self.pages += sign * -(-length // page)
        left = sequence.max_output_tokens - sequence.generated
        if not sequence.max_output_tokens:
            self._still_squares += sign * length * length
            return
        now = self.passes
        self.growing += sign
        residue = (1 - length + now) % page
        self.openings[residue] = self.openings.get(residue, 0) + sign
        offset = length - now
        self._offsets += sign * offset
        self._squared_offsets += sign * offset * offset
        if left > self.clip_tokens:
            self.reserve_tokens += sign * self.clip_tokens
            turn = now + left - self.clip_tokens
            turning = self.clipping.pop(turn, 0) + sign
            if turning:
                self.clipping[turn] = turning
        else:
            self.reserve_tokens += sign * left
            self.falling += sign
        end = now + left
        if sign > 0:
            group = self.ending.get(end)
            if group is None:
                self.ending[end] = [sequence]
            else:
                group.append(sequence)
        elif left:
            group = self.ending[end]
            group.remove(sequence)
            if not group:
                del self.ending[end]

    # ------------------------------------------------------------ questions

    def generated(self, sequence: SglangSequence) -> int:
        """What a member has generated so far."""
        return self.passes - sequence.origin if sequence.max_output_tokens else 0

    @property
    def slack_tokens(self) -> int:
        """Slots missing to whole pages, over all members."""
        return self.pages * self.page_tokens - self.tokens

    @property
    def next_openings(self) -> int:
        """Members that open a page in the next pass."""
        return self.openings.get((self.passes + 1) % self.page_tokens, 0)

    def openings_within(self, passes: int) -> int:
        """Pages opened in the next ``passes`` passes together, as long as nobody joins or ends."""
        page, openings = self.page_tokens, self.openings
        first = (self.passes + 1) % page
        if passes == 1:
            return openings.get(first, 0)
        cycles, rest = divmod(passes, page)
        opened = cycles * self.growing
        if rest:
            for residue, count in openings.items():
                if (residue - first) % page < rest:
                    opened += count
        return opened

    @property
    def squared_tokens(self) -> int:
        """Sum of the squares of the members' lengths."""
        now = self.passes
        squares = self._squared_offsets + 2 * now * self._offsets + now * now * self.growing
        return squares + self._still_squares

    @property
    def is_mixed(self) -> bool:
        """Whether some members grow and some do not."""
        return 0 < self.growing < len(self.members)

    def reserve(self, ratio: float) -> float:
        """Tokens set aside for outputs to come: the float sum in running order (`spec 05, 8`)."""
        total = 0.0
        clip, now = self.clip_tokens, self.passes
        for sequence in self.members.values():
            left = sequence.max_output_tokens - (now - sequence.origin) if sequence.max_output_tokens else 0
            total += float(min(left, clip)) * ratio
        return total

    def victim(self) -> SglangSequence:
        """Who is retracted first: who has generated least, the first in running order among equals."""
        now = self.passes
        members: Iterable[SglangSequence] = self.members.values()
        return max(members, key=lambda s: s.origin if s.max_output_tokens else now)

    def next_watched_page(self) -> int:
        """The pass in which the next page of a watched member fills; `NEVER` if there is none."""
        if not self.watched:
            return NEVER
        now, page = self.passes, self.page_tokens
        lengths = (s.prompt_tokens + now - s.origin for s in self.watched.values() if s.max_output_tokens)
        return min((now + page - length % page for length in lengths), default=NEVER)
