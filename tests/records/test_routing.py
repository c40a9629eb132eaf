"""How evenly a router loads the workers."""

from __future__ import annotations

import pytest

from dynamo_sim.records.routing import LoadSpread, RoutingDecision, mean_hit_rate
from tests.helpers import request


def decision(
    worker_id: int, at_ms: float, ended_ms: float | None, hit_rate: float | None = None
) -> RoutingDecision:
    asked = request()
    asked.ended_ms = ended_ms
    return RoutingDecision(at_ms, "fleet", asked, worker_id, 0.0, hit_rate, {})


def test_even_loads_have_an_imbalance_of_1_and_a_single_loaded_worker_one_of_the_number_of_workers() -> None:
    workers = [(0.0, 2)]
    even = LoadSpread.of([decision(0, 0.0, 50.0), decision(1, 0.0, 50.0)], workers, 100.0)
    assert even.imbalance == pytest.approx(1.0)
    uneven = LoadSpread.of([decision(0, 0.0, 50.0), decision(0, 0.0, None)], workers, 100.0)
    assert uneven.imbalance == pytest.approx(2.0)
    assert (uneven.most[0], uneven.mean[0], uneven.most[-1], uneven.mean[-1]) == (2.0, 1.0, 1.0, 0.5)


def test_without_decisions_there_is_no_imbalance() -> None:
    assert LoadSpread.of([], [(0.0, 1)], 10.0).imbalance == 0.0


def test_the_mean_hit_rate_leaves_out_routers_that_do_not_know() -> None:
    known = [decision(0, 0.0, 1.0, rate) for rate in (0.5, 1.0)]
    assert mean_hit_rate([*known, decision(0, 0.0, 1.0)]) == 0.75
    assert mean_hit_rate([decision(0, 0.0, 1.0)]) is None
