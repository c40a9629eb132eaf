"""Durations from a planner profile (`spec 04, 4`)."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_sim.timing.durations import milliseconds, pass_ms
from dynamo_sim.timing.profile import ProfileTiming
from dynamo_sim.timing.profile_grid import ProfileGrid

INSIDE: dict[str, Any] = {  # the arrays of the shared case timing-profile/profile-inside
    "prefill_isl": [10, 20, 40, 100],
    "prefill_ttft_ms": [5, 9, 30, 31],
    "decode_active_kv_tokens": [0, 16, 32, 64],
    "decode_context_length": [8, 16, 64],
    "decode_itl": [[2, 3, 4], [3, 5, 8], [4, 9, 20], [5, 6, 7]],
}


def timing(*ratios: float, **changes: Any) -> ProfileTiming:
    return ProfileTiming(ProfileGrid.from_mapping({**INSIDE, **changes}), *ratios)


@st.composite
def grids(draw: st.DrawFn) -> ProfileGrid:
    def axis(top: int) -> list[float]:
        return sorted(draw(st.sets(st.integers(0, top), min_size=2, max_size=5)))

    isl, active, context = axis(500), axis(2000), axis(300)
    value = st.floats(-10.0, 100.0)
    return ProfileGrid.from_mapping(
        {
            "prefill_isl": isl,
            "prefill_ttft_ms": [draw(value) for _ in isl],
            "decode_active_kv_tokens": active,
            "decode_context_length": context,
            "decode_itl": [[draw(value) for _ in context] for _ in active],
        }
    )


def plain_line(x1: float, y1: float, x2: float, y2: float, x: float) -> float:
    return ((y2 - y1) / (x2 - x1)) * (x - x1) + y1


def plain_decode_ms(grid: ProfileGrid, kv_tokens: int, context_tokens: int) -> float:
    """The two interpolations along the tokens in use, then the one along the context."""
    active, context = grid.decode_active_kv_tokens.tolist(), grid.decode_context_length.tolist()
    itl = grid.decode_itl.tolist()
    i = min(max(bisect_right(active, kv_tokens) - 1, 0), len(active) - 2)
    j = min(max(bisect_right(context, context_tokens) - 1, 0), len(context) - 2)
    z1 = plain_line(active[i], itl[i][j], active[i + 1], itl[i + 1][j], kv_tokens)
    z2 = plain_line(active[i], itl[i][j + 1], active[i + 1], itl[i + 1][j + 1], kv_tokens)
    return max(plain_line(context[j], z1, context[j + 1], z2, context_tokens), 1.0)


def test_worked_examples_of_prefill() -> None:
    assert timing().prefill_ms(1, 15) == 7.0
    assert timing().prefill_ms(3, 5) == 7.0
    assert timing().prefill_ms(1, 150) == milliseconds(31833333)


def test_measured_points_are_met() -> None:
    assert timing().prefill_ms(1, 40) == 30.0
    assert timing().decode_ms(32, 1, 16) == 9.0
    assert timing().decode_ms(64, 1, 64) == 7.0


def test_decode_is_bilinear() -> None:
    assert timing().decode_ms(24, 1, 12) == 0.25 * (3 + 5 + 4 + 9)


def test_outside_the_last_segment_goes_on_but_not_below_zero_or_one() -> None:
    assert timing().decode_ms(128, 1, 64) == 1.0  # 7 - 13 * 2
    assert timing().decode_ms(128, 1, 8) == 7.0
    assert timing(prefill_ttft_ms=[5, 25, 30, 31]).prefill_ms(1, 2) == 0.0
    assert timing().prefill_ms(1, 0) == 1.0


def test_ratios_divide_and_decode_has_both() -> None:
    assert timing(2.0, 4.0).prefill_ms(1, 15) == 3.5
    assert timing(2.0, 4.0).decode_ms(32, 1, 16) == 1.125
    assert timing(0.0, 4.0).decode_ms(32, 1, 16) == 9.0


@given(grid=grids(), questions=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 500)), max_size=30))
def test_decode_is_the_plain_formula(grid: ProfileGrid, questions: list[tuple[int, int]]) -> None:
    timing = ProfileTiming(grid, 1.7)
    expected = [pass_ms(plain_decode_ms(grid, kv, context), 1.7) for kv, context in questions]
    assert [timing.decode_ms(kv, 1, context) for kv, context in questions] == expected


def test_durations_that_are_raised_in_a_run_are_told() -> None:
    assert not list(timing().warnings())
    assert list(timing(prefill_ttft_ms=[-5, 25, 30, 31]).warnings()) == [
        "timing profile: prefill durations below 0 ms count as 0 ms in a run"
    ]


def test_questions_outside_the_measured_range_are_counted() -> None:
    profile = timing()
    for tokens in (5, 10, 100, 150, 400):
        profile.prefill_ms(1, tokens)
    profile.decode_ms(64, 1, 8)
    profile.decode_ms(100, 1, 3)
    profile.decode_ms(100, 1, 3)
    outside = profile.outside_range
    assert (outside.prefill_tokens.below, outside.prefill_tokens.above) == (1, 2)
    assert (outside.prefill_tokens.least, outside.prefill_tokens.most) == (5, 400)
    assert outside.decode_kv_tokens.outside == outside.decode_context_tokens.outside == 2
    first, second, third = outside.warnings()
    assert first.startswith("3 of 5 prefill durations lie outside the 10 to 100 prompt tokens of the timing")
    assert "(down to 5, up to 400)" in first
    assert second.startswith("2 of 3 decode durations lie outside the 0 to 64 KV tokens in use")
    assert third.startswith("2 of 3 decode durations lie outside the 8 to 64 tokens of mean context")


def test_nothing_outside_warns_of_nothing() -> None:
    profile = timing()
    profile.prefill_ms(1, 10)
    profile.decode_ms(0, 1, 64)
    assert not list(profile.outside_range.warnings())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"prefill_isl": [10], "prefill_ttft_ms": [5]}, "prefill_isl needs at least two values, it has 1"),
        (
            {"prefill_isl": [10, 20, 20, 100]},
            r"rise from value to value, but 20 follows 20 \(values 2 and 3\)",
        ),
        ({"decode_context_length": [8, 64, 16]}, "decode_context_length must rise"),
        ({"prefill_ttft_ms": [5, 9, 30]}, "prefill_isl has 4 values, but prefill_ttft_ms 3"),
        ({"decode_itl": [[1, 2], [1, 2], [1, 2], [1, 2]]}, r"shape \(4, 2\), but .* need \(4, 3\)"),
        ({"decode_itl": [1, 2, 3]}, "decode_itl must have 2 dimensions, not 1"),
        ({"decode_itl": [[1, 2, 3], [1, 2]]}, "decode_itl must be rows of equal length of numbers"),
        ({"prefill_isl": ["a", "b"]}, "prefill_isl must be a list of numbers"),
        ({"prefill_ttft_ms": [5, float("nan"), 30, 31]}, r"prefill_ttft_ms\[1\] is nan"),
        ({"decode_tpot": [1]}, "decode_tpot is not one of prefill_isl"),
    ],
)
def test_what_is_no_grid_is_refused_with_the_reason(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        timing(**changes)
