"""Decoding sequences that each gain one token a pass, handled as one group."""

from __future__ import annotations

from collections import defaultdict, deque

from dynamo_sim.engine.vllm.sequence import Sequence


class Lockstep:
    """The sequences of a worker that decode in step: a pass costs what changes in it, not what runs in it.

    Everything about a member follows from the pass number: it has generated ``passes - origin`` tokens, opens a block
    in the passes of one residue modulo the block size, and ends in a pass known from the start.

    Attributes:
        passes: decode passes of the group so far.
        count: its members.
        tokens: sum of their lengths.
        blocks: sum of the blocks they hold.
        final_blocks: sum of the blocks they will hold at their ends.
        ending: members by the pass in which they generate their last token, in running order.
        opening: members by the residue (pass modulo block size) in which they open a block, in running order.
        openings: how many those are.
    """

    __slots__ = (
        "_offsets",
        "_offsets_squared",
        "block_size",
        "blocks",
        "count",
        "ending",
        "final_blocks",
        "opening",
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
        self.final_blocks = 0
        self.ending: dict[int, list[Sequence]] = {}
        self.opening: defaultdict[int, list[Sequence]] = defaultdict(list)
        self.openings = [0] * block_size
        self._offsets = 0
        self._offsets_squared = 0

    def add(self, sequence: Sequence) -> None:
        """Let a sequence join that has just generated a token and has more to generate."""
        now = self.passes
        size = self.block_size
        length = sequence.prompt_tokens + sequence.generated
        origin = sequence.origin = now - sequence.generated
        self.count += 1
        self.tokens += length
        self.blocks += -(-length // size)
        final = sequence.prompt_tokens + sequence.max_output_tokens
        self.final_blocks += -(-final // size)
        offset = length - now
        self._offsets += offset
        self._offsets_squared += offset * offset
        end = origin + sequence.max_output_tokens
        group = self.ending.get(end)
        if group is None:
            self.ending[end] = [sequence]
        else:
            group.append(sequence)
        residue = (1 - offset) % size
        self.opening[residue].append(sequence)
        self.openings[residue] += 1

    def end(self, sequence: Sequence) -> None:
        """Forget a member that has generated its last token in the present pass (already out of `ending`)."""
        size = self.block_size
        length = sequence.prompt_tokens + sequence.max_output_tokens
        self.count -= 1
        self.tokens -= length
        self.blocks -= -(-length // size)
        self.final_blocks -= -(-length // size)
        offset = length - self.passes
        self._offsets -= offset
        self._offsets_squared -= offset * offset
        residue = (1 - offset) % size
        self.opening[residue].remove(sequence)
        self.openings[residue] -= 1

    def advance(self, passes: int, opened_blocks: int) -> None:
        """Give every member a token in each of ``passes`` passes, in which ``opened_blocks`` blocks were opened."""
        self.passes += passes
        self.tokens += passes * self.count
        self.blocks += opened_blocks

    @property
    def next_openings(self) -> int:
        """Members that open a block in the next pass."""
        return self.openings[(self.passes + 1) % self.block_size]

    def openings_within(self, passes: int) -> int:
        """Blocks opened in the next ``passes`` passes together, as long as nobody joins or ends."""
        cycles, rest = divmod(passes, self.block_size)
        opened = cycles * self.count
        first = (self.passes + 1) % self.block_size
        opened += sum(self.openings[first : first + rest])
        beyond = first + rest - self.block_size
        return opened + sum(self.openings[:beyond]) if beyond > 0 else opened

    def shortage_at_the_end(self, passes: int, free_blocks: int) -> int:
        """Blocks missing for the next ``passes`` passes together, in the last of which members may end.

        In that pass members take their turns in running order, and who ends gives back one block, its last one.
        """
        shortage = max(0, self.openings_within(passes - 1) - free_blocks)
        free_blocks = max(0, free_blocks - self.openings_within(passes - 1))
        last = self.passes + passes
        turns = deque(self.opening[last % self.block_size])
        for sequence in self.ending.get(last, ()):
            while turns and turns[0].admission <= sequence.admission:
                turns.popleft()
                shortage += not free_blocks
                free_blocks -= bool(free_blocks)
            free_blocks += 1
        return shortage + max(0, len(turns) - free_blocks)

    @property
    def squared_tokens(self) -> int:
        """Sum of the squares of the members' lengths."""
        now = self.passes
        return self._offsets_squared + 2 * now * self._offsets + now * now * self.count

    def members(self) -> list[Sequence]:
        """All members, in no particular order."""
        return [sequence for group in self.ending.values() for sequence in group]

    def dissolve(self) -> None:
        """Bring every member up to date and let all go."""
        now = self.passes
        for sequence in self.members():
            sequence.generated = generated = now - sequence.origin
            length = sequence.prompt_tokens + generated
            sequence.computed = length - 1
            sequence.allocated = length
            full = (length - 1) // self.block_size
            if full > sequence.full_blocks:
                sequence.full_blocks = full
        self.ending.clear()
        self.opening.clear()
        self.openings = [0] * self.block_size
        self.count = self.tokens = self.blocks = self.final_blocks = 0
        self._offsets = self._offsets_squared = 0
