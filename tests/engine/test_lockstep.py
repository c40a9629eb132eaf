"""The lockstep group: its sums are those of its members, whatever happens."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from dynamo_sim.engine.lockstep import LockstepGroup


@dataclass(eq=False)
class Member:
    prompt_tokens: int
    max_output_tokens: int
    generated: int = 0
    origin: int = 0


def check(group: LockstepGroup[Member], members: list[Member]) -> None:
    """Hold every sum against what the members say one by one."""
    size = group.block_size
    lengths = [group.length(m) for m in members]
    assert group.count == len(members)
    assert group.tokens == sum(lengths)
    assert group.blocks == sum(-(-n // size) for n in lengths)
    assert group.squared_tokens == sum(n * n for n in lengths)
    for passes in (0, 1, 2, size, 2 * size + 1):
        opened = sum(-(-(n + passes) // size) - -(-n // size) for n in lengths)
        assert group.openings_within(passes) == opened
    ends: dict[int, list[Member]] = {}
    for m in members:
        ends.setdefault(group.passes + m.max_output_tokens - group.generated(m), []).append(m)
    assert group.ending == ends


@pytest.mark.parametrize("seed", range(30))
def test_sums_are_those_of_the_members(seed: int) -> None:
    draw = random.Random(seed)
    group: LockstepGroup[Member] = LockstepGroup(draw.choice([1, 2, 4, 16]))
    members: list[Member] = []
    for _ in range(100):
        what = draw.random()
        if what < 0.4 or not members:
            wanted = draw.randint(1, 30)
            members.append(Member(draw.randint(1, 50), wanted, draw.randrange(wanted)))
            group.join(members[-1:])
        elif what < 0.5:
            group.leave([members.pop(draw.randrange(len(members)))])
        elif what < 0.55:
            group.clear()
            members.clear()
        else:
            passes = draw.randint(1, min(group.ending) - group.passes)
            group.advance(passes, group.openings_within(passes))
            for ended in group.pop_ended():
                members.remove(ended)
                assert ended.generated == ended.max_output_tokens
        check(group, members)
