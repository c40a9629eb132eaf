"""The ids that stand for the blocks of a prompt, in traces and in the reference's synthetic load."""

from __future__ import annotations

from math import floor

from dynamo_sim.errors import ScenarioError
from dynamo_sim.text import plain_number

TOKEN_MASK = (1 << 32) - 1
"""An id stands for the token value ``id mod 2**32`` (`spec 08, 4`)."""


def half_up(value: float) -> int:
    """Round a number that is not negative; halves go up."""
    below = floor(value)
    return below + (value - below >= 0.5)


def check_shared_ratio(ratio: float) -> None:
    """Raise ScenarioError unless a share of prompt blocks lies between 0 and 1."""
    if not 0.0 <= ratio <= 1.0:
        raise ScenarioError(f"shared_prefix_ratio must be between 0.0 and 1.0, got {plain_number(ratio)}")


def shared_blocks(prompt_blocks: int, ratio: float, groups: int) -> int:
    """How many leading blocks of a prompt are shared; half a block rounds up (`spec 08, 8 and 10`)."""
    if not (ratio > 0.0 and groups > 0):
        return 0
    return min(prompt_blocks, half_up(prompt_blocks * ratio))
