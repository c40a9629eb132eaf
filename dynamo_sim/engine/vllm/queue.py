"""The waiting requests of a vLLM-style worker."""

from __future__ import annotations

from collections import deque

from dynamo_sim.engine.lengths import Lengths
from dynamo_sim.engine.vllm.sequence import Sequence


class WaitingQueue:
    """Requests in order of arrival, behind those that were preempted.

    Args:
        handed_over: whether the worker computes no prompts: all that waits then has run elsewhere, and counts among
            ``returned`` with its prompt length (`spec 07, 14`).

    Attributes:
        waiting: all of them; the first one is to be admitted next.
        arrivals: how many never ran, and their prompt lengths.
        returned: how many were preempted, and their lengths.
    """

    __slots__ = ("_handed_over", "arrivals", "returned", "waiting")

    def __init__(self, handed_over: bool = False) -> None:
        self._handed_over = handed_over
        self.waiting: deque[Sequence] = deque()
        self.arrivals = Lengths()
        self.returned = Lengths()

    def append(self, sequence: Sequence) -> None:
        """Queue an arrival."""
        self.waiting.append(sequence)
        self._enter(sequence)

    def return_to_front(self, sequence: Sequence) -> None:
        """Let a preempted sequence wait before all others."""
        self.waiting.appendleft(sequence)
        self._enter(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Take out the head, or who was the head before others had to make room for it."""
        if self.waiting[0] is sequence:
            self.waiting.popleft()
        else:
            self.waiting.remove(sequence)
        if self._handed_over:
            self.returned.remove(sequence.prompt_tokens)
        elif sequence.preempted:
            self.returned.remove(sequence.tokens)
        else:
            self.arrivals.remove(sequence.prompt_tokens)

    def _enter(self, sequence: Sequence) -> None:
        if self._handed_over:
            self.returned.add(sequence.prompt_tokens)
        elif sequence.preempted:
            self.returned.add(sequence.tokens)
        else:
            self.arrivals.add(sequence.prompt_tokens)
