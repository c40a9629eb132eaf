"""Equal names mean equal prefixes: checked against comparing token lists (`spec 03, 1`)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_sim.errors import SimulationError
from dynamo_sim.kv.prefix import PrefixInterner, merge_runs
from dynamo_sim.limits import MAX_BLOCKS
from dynamo_sim.workload.request import Request
from dynamo_sim.workload.transcript import Transcript

RUNS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=6)


def tokens_of(runs):
    return [value for value, length in runs for _ in range(length)]


@given(st.lists(RUNS, max_size=8), st.integers(1, 7))
def test_names_are_equal_exactly_where_the_tokens_are(sequences, block_size):
    interner = PrefixInterner(block_size)
    prefix_of_name = {}
    name_of_prefix = {}
    for runs in sequences:
        tokens = tokens_of(runs)
        names = interner.blocks(runs)
        assert len(names) == len(tokens) // block_size
        for position, name in enumerate(names):
            prefix = tuple(tokens[: (position + 1) * block_size])
            assert prefix_of_name.setdefault(name, prefix) == prefix
            assert name_of_prefix.setdefault(prefix, name) == name


@given(RUNS)
def test_merging_keeps_the_tokens_and_leaves_no_equal_neighbours(runs):
    merged = merge_runs(runs)
    assert tokens_of(merged) == tokens_of(runs)
    assert all(a[0] != b[0] for a, b in pairwise(merged))
    assert all(length > 0 for _, length in merged)


def test_a_longer_stretch_continues_a_shorter_one():
    interner = PrefixInterner(4)
    short = interner.blocks([(5, 12)])
    long = interner.blocks([(5, 40)])
    middle = interner.blocks([(5, 20)])
    assert long[:3] == short
    assert middle == long[:5]


def test_single_token_runs_spell_the_same_blocks_as_whole_ids():
    interner = PrefixInterner(4)
    assert interner.blocks([(1, 1)] * 4 + [(2, 2), (2, 2)]) == interner.blocks([(1, 4), (2, 4)])


def test_the_end_of_a_prompt_that_fills_no_block_has_no_name():
    interner = PrefixInterner(4)
    assert interner.blocks([(1, 3)]) == []
    assert len(interner.blocks([(1, 4), (2, 3)])) == 1


def test_trace_blocks_and_engine_blocks_need_no_common_multiple():
    """`spec 08, 4`: trace block 6, engine block 4: [1, 2, 3] and [1, 3, 3] share one block."""
    interner = PrefixInterner(4)
    first = interner.blocks([(1, 6), (2, 6), (3, 6)])
    second = interner.blocks([(1, 6), (3, 12)])
    assert first[0] == second[0]
    assert not set(first[1:]) & set(second[1:])


def test_fresh_names_are_unlike_every_other():
    interner = PrefixInterner(2)
    names = [
        *interner.blocks([(1, 6)]),
        *interner.new_names(3),
        *interner.blocks([(2, 4)]),
        *interner.new_names(),
    ]
    assert len(set(names)) == len(names)
    assert interner.blocks([(1, 6)]) == names[:3]


@pytest.mark.parametrize("runs", [[(1, 10**12)], [(1, 8), (2, 4 * MAX_BLOCKS)]])
def test_a_prompt_of_too_many_blocks_is_refused_before_it_fills_the_memory(runs):
    with pytest.raises(SimulationError, match="tokens has more than 16,777,216 blocks of 4 tokens"):
        PrefixInterner(4).blocks(runs)


@given(st.lists(st.tuples(RUNS, st.integers(0, 5)), min_size=1, max_size=6), st.integers(1, 7))
def test_the_turns_of_a_conversation_are_named_like_whole_prompts(turns, block_size):
    """What earlier turns have named is not named again, and comes out the same (`spec 08, 7`)."""
    one_by_one, at_once = PrefixInterner(block_size), PrefixInterner(block_size)
    transcript = Transcript()
    for index, (runs, answer_tokens) in enumerate(turns):
        request = Request(index, 0.0, 0, answer_tokens, merge_runs(runs))
        transcript.asked(request, is_last=index == len(turns) - 1)
        answer = ((value, 1) for value in request.planned_output or ())
        assert one_by_one.names_of(request) == at_once.blocks([*request.prompt, *answer])
        transcript.answered(request, answer_tokens)


def test_an_earlier_turn_can_be_named_after_a_later_one():
    transcript, interner = Transcript(), PrefixInterner(2)
    first, second = (Request(index, 0.0, 3, 1, ((index, 3),)) for index in range(2))
    for request in (first, second):
        transcript.asked(request, is_last=request is second)
        transcript.answered(request, 1)
    assert interner.names_of(second)[:1] == interner.names_of(first)[:1]
    assert first.prompt == ((0, 3),)
