"""Percentiles and deviations as the report defines them (spec 09, 3)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_sim.records.percentiles import STATISTICS, nearest_rank, percentiles, statistics

RANKS = {
    1: (0, 0, 0, 0, 0),
    2: (1, 1, 1, 1, 1),
    3: (1, 2, 2, 2, 2),
    4: (2, 2, 3, 3, 3),
    5: (2, 3, 4, 4, 4),
    6: (3, 4, 5, 5, 5),
    11: (5, 8, 9, 10, 10),
    21: (10, 15, 18, 19, 20),
    101: (50, 75, 90, 95, 99),
}


@pytest.mark.parametrize("count", RANKS)
def test_ranks_round_halves_up(count: int) -> None:
    assert tuple(nearest_rank(count, percent) for percent in (50, 75, 90, 95, 99)) == RANKS[count]


def test_no_value_makes_every_statistic_zero() -> None:
    assert statistics(np.empty(0)) == dict.fromkeys(STATISTICS, 0.0)
    assert statistics(np.empty(0), np.empty(0, dtype=np.int64)) == dict.fromkeys(STATISTICS, 0.0)


def test_three_values() -> None:
    found = statistics(np.array([10.0, 30.0, 20.0]))
    assert found["mean"] == 20.0
    assert found["std"] == 8.16496580927726
    assert [found[name] for name in ("median", "p75", "p90", "p95", "p99")] == [20.0, 30.0, 30.0, 30.0, 30.0]


def test_the_median_of_two_values_is_the_larger() -> None:
    assert percentiles(np.array([7.0, 3.0]), (50,)) == [7.0]


def test_statistics_are_plain_floats() -> None:
    assert {type(value) for value in statistics(np.array([1.0, 2.0])).values()} == {float}


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=30))
def test_a_value_that_stands_for_several_counts_as_often(pairs: list[tuple[int, int]]) -> None:
    pairs.sort()
    values = np.array([value / 7 for value, _ in pairs])
    counts = np.array([count for _, count in pairs])
    together, apart = statistics(values, counts), statistics(np.repeat(values, counts))
    for name in STATISTICS:
        if name in ("mean", "std"):
            assert math.isclose(together[name], apart[name], rel_tol=1e-9, abs_tol=1e-9)
        else:
            assert together[name] == apart[name]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.randoms())
def test_the_order_of_values_changes_no_bit(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert statistics(np.array(values)) == statistics(np.array(shuffled))
