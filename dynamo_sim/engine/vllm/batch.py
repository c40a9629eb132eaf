"""The running requests of a vLLM-style worker."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_sim.engine.lockstep import LockstepGroup
from dynamo_sim.engine.token_log import TokenLog
from dynamo_sim.engine.vllm.pass_plan import PassPlan
from dynamo_sim.engine.vllm.sequence import Sequence


class RunningBatch:
    """Running sequences in order of admission; those at the beginning decode in lockstep.

    Members of the group are scheduled as one. Whatever a pass cannot treat so (a preemption, a budget smaller than the
    batch, planned outputs, speculative bursts) dissolves the group; the pass goes on sequence by sequence, and the
    group forms again behind it. Both ways give the same numbers.

    Args:
        block_size: tokens per block.
        tokens: where token times are written.
        lockstep: whether groups are formed at all.

    Attributes:
        running: all of them.
        group: those that decode in lockstep, always the beginning of ``running``.
        pass_number: number of the latest pass that was not part of a stretch; several may lie at one time.
        group_pass_number: number of the pass, not in a stretch, in which the group got a token last.
        final_blocks: sum of the blocks all of them will hold with their last tokens.
    """

    def __init__(self, block_size: int, tokens: TokenLog, lockstep: bool) -> None:
        self.running: list[Sequence] = []
        self.group: LockstepGroup[Sequence] = LockstepGroup(block_size)
        self.pass_number = self.group_pass_number = 0
        self.final_blocks = 0
        self._tokens = tokens
        self._lockstep = lockstep
        self._token_by_token = 0  # how many cannot join a group

    # ------------------------------------------------------------ who is in it

    def admit(self, sequence: Sequence, plan: PassPlan) -> None:
        """Let a sequence run, behind all others."""
        self.running.append(sequence)
        sequence.running = True
        sequence.preempted = False
        self.final_blocks += sequence.final_blocks
        if sequence.token_by_token:
            self._token_by_token += 1
            self.dissolve(plan)

    def remove(self, sequence: Sequence) -> None:
        """Take out a sequence that is no member of the group any more."""
        self.running.remove(sequence)
        sequence.running = False
        self.final_blocks -= sequence.final_blocks
        self._token_by_token -= sequence.token_by_token

    # ------------------------------------------------------------ the group

    def settle(self, sequences: Iterable[Sequence]) -> None:
        """Bring the tables of sequences up to date whose ``generated`` is; each has a token that is not computed."""
        size = self.group.block_size
        for sequence in sequences:
            table = sequence.table
            full = (sequence.prompt_tokens + sequence.generated - 1) // size
            if full > table.full_blocks:
                table.full_blocks = full
            table.held_blocks = full + 1

    def dissolve(self, plan: PassPlan | None) -> None:
        """Go on sequence by sequence; members that ``plan`` has scheduled as a group get their own work in it."""
        group = self.group
        if not group.count:
            return
        members = self.running[: group.count]
        for sequence in members:
            sequence.generated = group.passes - sequence.origin
            sequence.computed = sequence.prompt_tokens + sequence.generated - 1
            sequence.emitted_pass = self.group_pass_number
        self.settle(members)
        self._tokens.leave(members)
        group.clear()
        if plan is not None:
            plan.schedule_singly(members)

    def regroup(self) -> None:
        """Let those join that follow the group in the running list and got a token in the present pass."""
        if not self._lockstep or self._token_by_token:
            return
        number = self.pass_number
        joining = []
        for sequence in self.running[self.group.count :]:
            if (
                not sequence.generated
                or sequence.emitted_pass != number
                or sequence.computed != sequence.prompt_tokens + sequence.generated - 1
            ):
                break
            joining.append(sequence)
        if joining:
            self.group.join(joining)
            self._tokens.join(joining)
            self.group_pass_number = number
