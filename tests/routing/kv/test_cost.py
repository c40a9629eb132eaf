"""Costs and the choice among them, with the numbers of spec 06, 12."""

import numpy as np
import pytest

from dynamo_sim.routing.kv.cost import choose, costs
from dynamo_sim.scenario.routing import KvRouting

DEFAULTS = KvRouting(mode="kv_router")


def cost(config: KvRouting, tokens: int, *vectors: list[int]) -> list[float]:
    return list(costs(config, tokens, 64, *(np.array(vector, dtype=np.int64) for vector in vectors)))


def test_a_booked_worker_costs_more_than_an_idle_one_though_it_holds_the_prefix() -> None:
    assert cost(DEFAULTS, 256, [256, 0], [3, 0], [4, 0], [3, 0]) == [10.0, 8.0]


def test_the_longer_overlap_wins_between_workers_past_their_prefill() -> None:
    assert cost(DEFAULTS, 300, [0, 0], [4, 3], [4, 4], [4, 3]) == [4.6875, 6.6875]


def test_the_credit_decays_with_the_load_above_the_least_loaded_worker() -> None:
    decaying = KvRouting(mode="kv_router", overlap_score_credit_decay=1.0)
    assert cost(decaying, 256, [640, 0], [3, 0], [10, 0], [3, 0]) == [14.0 - 1 / 3.5 * 3.0 + 11.0, 8.0]


def test_untracked_loads_cost_nothing() -> None:
    untracked = KvRouting(
        mode="kv_router", router_track_prefill_tokens=False, router_track_active_blocks=False
    )
    assert cost(untracked, 256, [640, 0], [3, 0], [10, 0], [3, 0]) == [0.0, 0.0]


def test_ties_go_to_the_lowest_id_or_are_drawn_evenly() -> None:
    tied = np.array([2.0, 1.0, 1.0, 1.0])
    random = np.random.default_rng(1)
    assert choose(tied, 0.0, random, "lowest_id") == 1
    counts = np.bincount([choose(tied, 0.0, random) for _ in range(6000)], minlength=4)
    expected = 2000.0
    assert counts[0] == 0
    assert (
        (counts[1:] - expected) ** 2 / expected
    ).sum() < 13.8  # chi-square, 2 degrees of freedom, p = 0.001


def test_the_worst_worker_has_exp_of_minus_1_by_temperature_of_the_weight_of_the_best() -> None:
    random = np.random.default_rng(2)
    drawn = np.bincount([choose(np.array([5.0, 9.0]), 0.5, random) for _ in range(20_000)])
    assert drawn[1] / drawn[0] == pytest.approx(np.exp(-2.0), rel=0.06)
