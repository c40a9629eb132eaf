"""What a pass under construction has decided so far."""

from __future__ import annotations

from typing import NamedTuple

from dynamo_sim.engine.vllm.sequence import Sequence


class Work(NamedTuple):
    """What one sequence does in a pass (`spec 02, 6.6`), all in tokens."""

    used: int
    prompt_part: int
    prompt_before: int
    prompt: int
    length: int


class PassPlan:
    """The scheduling half of a pass (`spec 02, 5`).

    Attributes:
        now_ms: start of the pass.
        budget: tokens that may still be scheduled.
        work: what the sequences outside the lockstep group do.
        group_count: members of the lockstep group, scheduled with one token each; zero once the group was dissolved
            (its members are in ``work`` then).
        prefill_count, prefill_ends, prefill_starts: the prefill batch: prompts in it, sum of the prompt tokens they
            will have computed, sum of those they had before.
        preempted: whether a sequence lost its place while the pass was scheduled.
        admissions: requests admitted.
        rejected: requests refused for good.
    """

    __slots__ = (
        "admissions",
        "budget",
        "group_count",
        "now_ms",
        "preempted",
        "prefill_count",
        "prefill_ends",
        "prefill_starts",
        "rejected",
        "work",
    )

    def __init__(self, now_ms: float, budget: int) -> None:
        self.now_ms = now_ms
        self.budget = budget
        self.work: dict[Sequence, Work] = {}
        self.group_count = 0
        self.prefill_count = 0
        self.prefill_ends = 0
        self.prefill_starts = 0
        self.preempted = False
        self.admissions = 0
        self.rejected: list[Sequence] = []

    def add(self, sequence: Sequence, work: Work) -> None:
        """Schedule ``work`` for ``sequence``."""
        self.work[sequence] = work
        self.budget -= work.used
        if work.prompt_part > 0:
            self.prefill_count += 1
            self.prefill_ends += work.prompt_before + work.prompt_part
            self.prefill_starts += work.prompt_before

    def undo(self, victim: Sequence) -> None:
        """Note a preemption while scheduling; what the victim was to do is taken back (`spec 02, 6.5`)."""
        self.preempted = True
        work = self.work.pop(victim, None)
        if work is None:
            return
        self.budget += work.used
        if work.prompt_part > 0:
            self.prefill_count -= 1
            self.prefill_ends -= work.prompt_before + work.prompt_part
            self.prefill_starts -= work.prompt_before

    @property
    def did_something(self) -> bool:
        """Whether any token was scheduled."""
        return bool(self.group_count) or any(work.used for work in self.work.values())
