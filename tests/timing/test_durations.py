"""Whole nanoseconds, scaling, and the polynomial (`spec 04, 1 to 3`)."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_sim.errors import SimulationError
from dynamo_sim.timing.durations import milliseconds, scaled_ns, seconds, whole_ns
from dynamo_sim.timing.polynomial import PolynomialTiming

DURATIONS_MS = st.one_of(
    st.floats(0.0, 1e9),
    # near halves of a nanosecond, where a rounded product and an exact one part
    st.builds(
        lambda whole, nudge: (whole + 0.5) / 1e6 * (1.0 + nudge),
        st.integers(0, 10**12),
        st.floats(-1e-15, 1e-15),
    ),
    st.floats(1e9, 1e15),
)


@pytest.mark.parametrize(
    ("ms", "ns"), [(6.5377165, 6537717), (27.5199735, 27519973), (0.0, 0), (16.622914, 16622914)]
)
def test_rounding_is_of_the_exact_product(ms: float, ns: int) -> None:
    assert whole_ns(ms) == ns


def test_exact_halves_go_to_the_even_neighbour() -> None:
    half_s = 2.0**-10  # 976562.5 ns, exactly
    assert whole_ns(half_s * 1000.0) == 976562
    assert whole_ns(3 * half_s * 1000.0) == 2929688


@given(ms=DURATIONS_MS)
def test_the_quick_way_to_round_is_the_exact_one(ms: float) -> None:
    assert whole_ns(ms) == round(Fraction(ms / 1000.0) * 10**9)


@pytest.mark.parametrize("ms", [float("nan"), float("inf"), 1e306])
def test_a_duration_without_end_is_an_error(ms: float) -> None:
    with pytest.raises(SimulationError, match="timing profile"):
        whole_ns(ms)


def test_seconds_are_whole_seconds_plus_a_fraction() -> None:
    assert seconds(16622914) == 0.016622914
    assert seconds(3_000_000_001) == 3.0 + 1 / 1e9
    assert milliseconds(16622914) == 16.622913999999998


def test_a_scaled_duration_is_rounded_twice() -> None:
    assert scaled_ns(16622914, 3.7) == 4492679
    assert scaled_ns(16322988, 4.0) == 4080747


def test_ratio_zero_scales_nothing_and_a_huge_one_leaves_nothing() -> None:
    assert scaled_ns(16622914, 0.0) == 16622914
    assert scaled_ns(16622914, 1e12) == 0


@pytest.mark.parametrize("value_s", [math.nan, math.inf, 2.0**64, 1e300])
def test_no_pass_takes_longer_than_any_duration_can_be(value_s: float) -> None:
    with pytest.raises(SimulationError, match="speed-up ratios"):
        whole_ns(value_s * 1000.0)


def test_worked_examples_of_the_polynomial() -> None:
    timing = PolynomialTiming(total_kv_tokens=128)
    assert timing.prefill_ms(1, 8) == 16.622913999999998
    assert timing.decode_ms(28, 2, 25) == milliseconds(16322988)
    assert PolynomialTiming(128, speedup_ratio=3.7).prefill_ms(1, 8) == milliseconds(4492679)
    assert PolynomialTiming(128, decode_speedup_ratio=4.0).decode_ms(28, 2, 25) == milliseconds(4080747)


def test_decode_speedup_leaves_prefill_alone() -> None:
    assert PolynomialTiming(128, 2.0, 4.0).prefill_ms(2, 4) == PolynomialTiming(128, 2.0).prefill_ms(1, 8)


def test_decode_takes_from_5_74_ms_when_empty_to_34_01_when_full() -> None:
    timing = PolynomialTiming(total_kv_tokens=1024)
    assert timing.decode_ms(0, 1, 1) == 5.74
    assert timing.decode_ms(1024, 1, 1) == pytest.approx(34.01)
    assert not timing.context_matters
