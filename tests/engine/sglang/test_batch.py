"""The running batch of an SGLang-style worker: its sums are those of its members, whatever happens.

Rules: `spec 05, 8, 10 and 15`.
"""

from __future__ import annotations

import random

import pytest

from dynamo_sim.engine.sglang.admission import RemainingTokens
from dynamo_sim.engine.sglang.batch import NEVER, RunningBatch
from dynamo_sim.engine.sglang.ratio import NewTokenRatio
from dynamo_sim.engine.sglang.sequence import SglangSequence
from dynamo_sim.kv.prefix import PrefixInterner
from tests.engine.sglang.driver import request


def sequence(input_tokens: int, output_tokens: int, generated: int = 0) -> SglangSequence:
    made = SglangSequence(request(0, 0.0, input_tokens, output_tokens), PrefixInterner(4))
    made.generated = generated
    return made


def check(batch: RunningBatch) -> None:
    """Hold every sum against what the members say one by one."""
    page, clip = batch.page_tokens, batch.clip_tokens
    members = list(batch.members.values())
    made = [batch.generated(s) for s in members]
    lengths = [s.prompt_tokens + g for s, g in zip(members, made, strict=True)]
    left = [s.max_output_tokens - g for s, g in zip(members, made, strict=True)]
    grows = [s.max_output_tokens > 0 for s in members]
    assert batch.growing == sum(grows)
    assert batch.tokens == sum(lengths)
    assert batch.group.blocks + batch._still_pages == sum(-(-n // page) for n in lengths)
    assert batch.slack_tokens == sum(-n % page for n in lengths)
    assert batch.squared_tokens == sum(n * n for n in lengths)
    assert batch.reserve_tokens == sum(min(n, clip) for n in left)
    assert batch.group.openings_within(1) == sum(
        n % page == 0 for n, g in zip(lengths, grows, strict=True) if g
    )
    for passes in (1, 2, 7):
        opened = (-(-(n + passes) // page) + n // -page for n, g in zip(lengths, grows, strict=True) if g)
        assert batch.group.openings_within(passes) == sum(opened)
    ends = {batch.group.passes + n for n, g in zip(left, grows, strict=True) if g}
    assert set(batch.group.ending) == ends
    if members:
        victim = batch.victim()
        assert members.index(victim) == made.index(min(made))


@pytest.mark.parametrize("seed", range(30))
def test_sums_are_those_of_the_members(seed: int) -> None:
    draw = random.Random(seed)
    batch = RunningBatch(draw.choice([1, 3, 4, 16]), draw.choice([0, 1, 5, 4096]))
    for _ in range(120):
        what = draw.random()
        members = list(batch.members.values())
        growing = [s for s in members if s.max_output_tokens]
        if what < 0.4 or not members:
            wanted = draw.randint(0, 20)
            batch.add(sequence(draw.randint(1, 30), wanted, draw.randrange(wanted) if wanted else 0))
        elif what < 0.5:
            batch.remove(draw.choice(members))
        elif what < 0.6 and growing:
            chosen = draw.choice(growing)
            left = chosen.max_output_tokens - batch.generated(chosen)
            if left > 1:
                batch.leap(chosen, draw.randint(1, left - 1))
        else:
            passes = min(draw.randint(1, 6), min(batch.group.ending, default=NEVER) - batch.group.passes)
            batch.advance(passes)
            for ended in batch.group.ending.pop(batch.group.passes, []):
                batch.remove(ended)
                assert ended.generated == ended.max_output_tokens
        check(batch)


def test_the_reserve_is_added_up_in_running_order() -> None:
    batch = RunningBatch(4, 4096)
    for wanted in (3, 1000, 7, 1):
        batch.add(sequence(8, wanted))
    ratio = 0.6989966666666666
    assert batch.reserve(ratio) == ((3.0 * ratio + 1000.0 * ratio) + 7.0 * ratio) + 1.0 * ratio


def test_equality_with_the_room_refuses_to_the_last_bit() -> None:
    batch = RunningBatch(4, 4096)
    batch.add(sequence(8, 20, 1))
    ratio = NewTokenRatio(1.0)
    ratio.lower(1)
    room = RemainingTokens(batch, 27, ratio.value)  # the fifth example of the specification
    assert room.refuse(16) and room.refuse(11) and not room.refuse(10)
    exact = 24.0 - batch.reserve(ratio.value)
    assert exact == 10.719063333333334
    unreserved = RemainingTokens(RunningBatch(4, 4096), 20, ratio.value)
    assert unreserved.refuse(20) and not unreserved.refuse(19)
    unreserved.promise(8)
    assert unreserved.refuse(12) and not unreserved.refuse(11)


def test_the_ratio_falls_to_a_seventh_in_six_hundred_passes_and_starts_anew() -> None:
    ratio = NewTokenRatio(1.0)
    ratio.lower(1)
    assert ratio.value == 0.6989966666666666
    ratio.lower(10_000)
    assert ratio.value == 0.7 * 0.14
    ratio.reset()
    assert ratio.value == 0.7


def test_the_ratio_of_a_negative_conservativeness_rises() -> None:
    ratio = NewTokenRatio(-1.0)
    ratio.lower(1)
    assert ratio.value == -0.7 * 0.14
    ratio.lower(1)
    assert ratio.value > -0.7 * 0.14
