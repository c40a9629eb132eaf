"""What a pass under construction has decided so far."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_sim.engine.vllm.sequence import Sequence

Work = tuple[int, int, int, int, int]
"""What one sequence does in a pass (`spec 02, 6.6`), all in tokens: computed in it; of its prompt computed in it, and
before it; its prompt; its length."""


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
        used, prompt_part, prompt_before, _, _ = work
        self.budget -= used
        if prompt_part > 0:
            self.prefill_count += 1
            self.prefill_ends += prompt_before + prompt_part
            self.prefill_starts += prompt_before

    def undo(self, victim: Sequence) -> None:
        """Note a preemption while scheduling; what the victim was to do is taken back (`spec 02, 6.5`)."""
        self.preempted = True
        work = self.work.pop(victim, None)
        if work is None:
            return
        used, prompt_part, prompt_before, _, _ = work
        self.budget += used
        if prompt_part > 0:
            self.prefill_count -= 1
            self.prefill_ends -= prompt_before + prompt_part
            self.prefill_starts -= prompt_before

    def schedule_singly(self, members: Iterable[Sequence]) -> None:
        """The group was dissolved: what it was scheduled for becomes work of its members, up to date by now."""
        if not self.group_count:
            return
        for sequence in members:
            prompt, length = sequence.prompt_tokens, sequence.tokens
            sequence.computed = length
            self.work[sequence] = (1, 0, prompt, prompt, length)
        self.group_count = 0

    @property
    def did_something(self) -> bool:
        """Whether any token was scheduled."""
        return bool(self.group_count) or any(used for used, *_ in self.work.values())

    def prefill_new_tokens(self) -> int:
        """Floored mean of the prompt tokens to compute, over the prefill batch (`spec 04, 2`); not for an empty one."""
        count = self.prefill_count
        return self.prefill_ends // count - self.prefill_starts // count
