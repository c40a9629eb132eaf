"""When requests got their tokens (`spec 09, 10`): first, second and last token, and the gaps between all of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Protocol

from dynamo_sim.engine.gaps import GapLog
from dynamo_sim.workload.request import Request


class TokenSource(Protocol):
    """What the log has to know of a sequence.

    Attributes:
        request: the request it serves.
        generated: tokens generated so far. Stale while it decodes in lockstep.
        emitted_ms: time of its latest token. Stale while it decodes in lockstep.
    """

    request: Request
    generated: int
    emitted_ms: float


class TokenLog:
    """Writes token times of one worker on its requests, and the gaps into one `GapLog`.

    The members of a lockstep group got their latest token at the same time, which is stored once.

    Attributes:
        gaps: gaps between consecutive tokens.
        group_ms: when the members of the group got their latest token.
    """

    __slots__ = ("_passes_noted", "_with_one_token", "gaps", "group_ms")

    def __init__(self) -> None:
        self.gaps = GapLog()
        self.group_ms = 0.0
        self._with_one_token: list[TokenSource] = []  # members of the group
        self._passes_noted = 0  # of the stretch in progress

    # ------------------------------------------------------------ one sequence

    def token(self, sequence: TokenSource, end_ms: float) -> None:
        """A sequence outside the group got the token it counts last in ``generated``."""
        if sequence.generated == 1:
            sequence.request.first_token_ms = end_ms
        else:
            if sequence.generated == 2:
                sequence.request.second_token_ms = end_ms
            self.gaps.add(sequence.emitted_ms, end_ms, 1)
        sequence.emitted_ms = end_ms

    def last_token(self, sequence: TokenSource, end_ms: float) -> None:
        """The token a sequence got at ``end_ms`` was its last one."""
        sequence.request.last_token_ms = end_ms
        sequence.request.emitted_tokens = sequence.generated

    # ------------------------------------------------------------ the group

    def join(self, sequences: Sequence[TokenSource]) -> None:
        """Sequences join the group; all members got their latest token at the time these got theirs."""
        for sequence in sequences:
            self.group_ms = sequence.emitted_ms
            if sequence.generated == 1:
                self._with_one_token.append(sequence)

    def leave(self, sequences: Sequence[TokenSource]) -> None:
        """Members go on outside the group."""
        for sequence in sequences:
            sequence.emitted_ms = self.group_ms
            if sequence in self._with_one_token:
                self._with_one_token.remove(sequence)

    def group_pass(self, end_ms: float, members: int) -> None:
        """The members, so many of them, got a token at ``end_ms``."""
        self.gaps.add(self.group_ms, end_ms, members)
        if self._with_one_token:
            self._second_tokens(end_ms)
        self.group_ms = end_ms

    def group_stretch(self, ends_ms: list[float], members: int) -> None:
        """The members, so many of them, got a token at each of ``ends_ms``: a stretch is over."""
        if self._passes_noted:
            ends_ms = ends_ms[self._passes_noted :]
            self._passes_noted = 0
            if not ends_ms:
                return
        self.gaps.add_stretch(self.group_ms, ends_ms, members)
        if self._with_one_token:
            self._second_tokens(ends_ms[0])
        self.group_ms = ends_ms[-1]

    def group_stretch_until(self, now_ms: float, ends_ms: list[float], members: int) -> None:
        """The same for the passes of a stretch in progress that have ended by ``now_ms``."""
        ended = bisect_right(ends_ms, now_ms)
        if ended > self._passes_noted:
            self.group_stretch(ends_ms[:ended], members)
            self._passes_noted = ended

    def _second_tokens(self, end_ms: float) -> None:
        for sequence in self._with_one_token:
            sequence.request.second_token_ms = end_ms
        self._with_one_token.clear()

    # ------------------------------------------------------------ the end of the run

    def unfinished(self, sequences: Iterable[TokenSource]) -> None:
        """The run is over: note what sequences outside the group have generated so far."""
        for sequence in sequences:
            if sequence.generated:
                self.last_token(sequence, sequence.emitted_ms)


class HiddenTokenLog(TokenLog):
    """For tokens that nobody sees: a prefill worker makes one to end a prompt, and it counts nowhere (`spec 07, 7`)."""

    __slots__ = ()

    def token(self, sequence: TokenSource, end_ms: float) -> None:
        sequence.emitted_ms = end_ms

    def last_token(self, sequence: TokenSource, end_ms: float) -> None:
        pass

    def group_pass(self, end_ms: float, members: int) -> None:
        self._with_one_token.clear()
        self.group_ms = end_ms

    def group_stretch(self, ends_ms: list[float], members: int) -> None:
        self.group_pass(ends_ms[-1], members)

    def group_stretch_until(self, now_ms: float, ends_ms: list[float], members: int) -> None:
        pass
