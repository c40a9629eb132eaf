"""Round robin over the active workers (`spec 01, 8`)."""

from __future__ import annotations

import pytest

from dynamo_sim.errors import SimulationError
from dynamo_sim.routing.round_robin import RoundRobin


def test_workers_take_turns() -> None:
    router = RoundRobin()
    assert [router.pick((0, 1, 2)) for _ in range(4)] == [0, 1, 2, 0]


def test_after_a_full_turn_the_next_is_a_worker_that_has_been_added() -> None:
    router = RoundRobin()
    for _ in range(3):
        router.pick((0, 1, 2))
    assert router.pick((0, 1, 2, 3, 4)) == 3


def test_the_cursor_counts_places_not_ids() -> None:
    router = RoundRobin()
    assert [router.pick((0, 1, 2, 3)) for _ in range(3)] == [0, 1, 2]
    assert [router.pick((4, 9)) for _ in range(2)] == [9, 4]


def test_without_an_active_worker_a_request_is_an_error() -> None:
    with pytest.raises(SimulationError, match="no worker"):
        RoundRobin().pick(())
