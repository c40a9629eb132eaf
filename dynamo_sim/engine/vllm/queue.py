"""The waiting requests of a vLLM-style worker."""

from __future__ import annotations

from collections import deque

from dynamo_sim.engine.lengths import Lengths
from dynamo_sim.engine.vllm.sequence import Sequence


class WaitingQueue:
    """Requests in order of arrival, behind those that were preempted.

    Attributes:
        waiting: all of them; the first one is to be admitted next.
        arrivals: how many never ran, and their prompt lengths.
        returned: how many were preempted, and their lengths.
    """

    __slots__ = ("arrivals", "returned", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Sequence] = deque()
        self.arrivals = Lengths()
        self.returned = Lengths()

    def append(self, sequence: Sequence) -> None:
        """Queue an arrival."""
        self.waiting.append(sequence)
        self.arrivals.add(sequence.prompt_tokens)

    def return_to_front(self, sequence: Sequence) -> None:
        """Let a preempted sequence wait before all others."""
        self.waiting.appendleft(sequence)
        self.returned.add(sequence.tokens)

    def remove(self, sequence: Sequence) -> None:
        """Take out the head, or who was the head before others had to make room for it."""
        if self.waiting[0] is sequence:
            self.waiting.popleft()
        else:
            self.waiting.remove(sequence)
        if sequence.preempted:
            self.returned.remove(sequence.tokens)
        else:
            self.arrivals.remove(sequence.prompt_tokens)
