"""`applied_compute_agentic`: answers and tool calls in turns (`spec 08, 8`)."""

from __future__ import annotations

import pytest

from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.prompt_ids import shared_blocks
from dynamo_sim.traces.formats import read_trace

LOOP = {
    "num_turns": 2,
    "input_prompt_length": 10,
    "assistant_response_length": [3, 2],
    "tool_call_output_length": [5, 4],
    "tool_call_latency": [0.05, 0.1],
    "final_assistant_response_length": 6,
}


def read(*rows, **options):
    return read_trace(list(rows), "applied_compute_agentic", 4, **options)


def test_prompts_grow_by_answer_and_tool_output():
    content = read(LOOP)
    turns = content.turns
    assert content.names == ["applied_compute_agentic_session_1"]
    assert [turns.input_tokens(row) for row in range(3)] == [10, 18, 24]
    assert [turns.output_tokens(row) for row in range(3)] == [3, 2, 6]
    assert list(content.delays) == [0.0, 50.0, 100.0]
    assert [turns.ids(row) for row in range(3)] == [[1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]]


def test_shared_ids_can_coincide_with_counted_ones():
    content = read(
        {**LOOP, "num_turns": 0, "input_prompt_length": 16, "assistant_response_length": [],
         "tool_call_output_length": [], "tool_call_latency": []},
        LOOP,
        shared_prefix_ratio=0.3,
        num_prefix_groups=2,
    )  # fmt: skip
    assert content.turns.ids(0) == [0, 1, 2, 3]  # one shared, three counted
    assert content.turns.ids(1) == [0, 4, 5]
    assert content.turns.ids(2) == [0, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("blocks", "ratio", "groups", "shared"),
    [(4, 0.5, 1, 2), (5, 0.5, 1, 3), (3, 0.5, 9, 2), (4, 0.5, 0, 0), (4, 0.0, 1, 0), (4, 1.0, 1, 4),
     (10, 0.449, 1, 4)],
)  # fmt: skip
def test_halves_round_up(blocks, ratio, groups, shared):
    assert shared_blocks(blocks, ratio, groups) == shared


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"num_turns": 1},
            "trace line 1 field assistant_response_length length 2 does not match num_turns 1",
        ),
        ({"tool_call_latency": [0.1]}, "field tool_call_latency length 1 does not match num_turns 2"),
        ({"input_prompt_length": 0}, "trace line 1 input_prompt_length must be positive"),
        ({"tool_call_latency": [-1, 0]}, "tool_call_latency[0] must be a finite non-negative number"),
        ({"final_assistant_response_length": None}, "missing field final_assistant_response_length"),
        ({"assistant_response_length": [1.0, 2]}, "assistant_response_length[0] must be a whole number"),
        ({"tool_call_latency": 3}, "tool_call_latency must be a list"),
        ({"input_prompt_length": 10**13}, "the prompt has 10000000000014 tokens; at most 2147483647"),
        (
            {"tool_call_output_length": [2**27, 1]},
            "134217744 tokens, more than 16777216 blocks of trace_block_size 4",
        ),
        ({"final_assistant_response_length": 2**64 - 1}, "the answer has 18446744073709551615 tokens"),
    ],
)
def test_errors(change, text):
    with pytest.raises(TraceError) as error:
        read({**LOOP, **change})
    assert text in str(error.value)
    assert error.value.line == 1


@pytest.mark.parametrize("ratio", [1.5, -0.5, float("nan")])
def test_the_shared_part_is_a_share(ratio):
    with pytest.raises(ScenarioError, match="shared_prefix_ratio must be between"):
        read(LOOP, shared_prefix_ratio=ratio)
