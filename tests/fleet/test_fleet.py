"""The fleet as a component: ids, targets, startup, removal, driving (`spec 01, 3 and 4`)."""

from __future__ import annotations

import pytest

from dynamo_sim.engine.roles import Stage
from dynamo_sim.errors import SimulationError
from dynamo_sim.fleet.fleet import Completion, Fleet
from dynamo_sim.workload.request import Outcome
from tests.helpers import collector, fleet, request

FOREVER = 1_000_000


def run_to_end(pool: Fleet, now_ms: float = 0.0) -> float:
    """Drive until nothing is left; returns the time of the end."""
    while (completion := pool.drive_ready(now_ms, FOREVER, collector())) is not None:
        now_ms = completion.step.end_ms
        pool.on_completion(completion, now_ms)
    return now_ms


def scaled(pool: Fleet, target: int) -> tuple[list[int], list[int], list[int]]:
    """What a target did: ids added, newly marked, removed."""
    effect = pool.apply_target_count(target)
    return list(effect.added), list(effect.marked), list(effect.removed)


def test_first_workers_are_active_at_once_whatever_the_startup_time() -> None:
    assert fleet(3, startup_time=60.0).active_worker_ids() == (0, 1, 2)


def test_startup_time_is_seconds_and_zero_means_none() -> None:
    assert fleet(startup_time=1.5).startup_time_ms == 1500.0
    assert fleet(startup_time=0.0).startup_time_ms is None
    assert fleet().startup_time_ms is None


def test_growing_with_startup_keeps_the_old_workers_active_only() -> None:
    pool = fleet(2, startup_time=10.0)
    assert scaled(pool, 4) == ([2, 3], [], [])
    assert pool.active_worker_ids() == (0, 1)
    assert pool.worker_count == 4


def test_growing_without_startup_is_active_at_once() -> None:
    pool = fleet(1)
    assert scaled(pool, 3) == ([1, 2], [], [])
    assert pool.active_worker_ids() == (0, 1, 2)


def test_scale_down_cancels_pending_startups_first_newest_first() -> None:
    pool = fleet(2, startup_time=10.0)
    pool.apply_target_count(4)
    assert scaled(pool, 3) == ([], [], [])
    assert pool.starting == {2}
    assert scaled(pool, 2) == ([], [], [])
    assert pool.starting == set() and pool.active_worker_ids() == (0, 1)


def test_scale_down_marks_active_workers_only_for_the_rest_highest_first() -> None:
    pool = fleet(3, startup_time=10.0)
    for worker_id in (0, 1, 2):
        pool.dispatch(worker_id, request(index=worker_id))
    pool.apply_target_count(5)
    assert scaled(pool, 1) == ([], [2, 1], [])
    assert pool.active_worker_ids() == (0,)
    assert pool.worker_count == 3


def test_an_idle_worker_is_removed_when_it_is_marked() -> None:
    pool = fleet(3)
    assert scaled(pool, 1) == ([], [2, 1], [1, 2])
    assert pool.worker_count == 1


def test_a_marked_worker_drains_before_it_leaves() -> None:
    pool = fleet(2)
    pool.dispatch(1, request())
    assert scaled(pool, 1) == ([], [1], [])
    assert pool.try_remove_drained() == []
    run_to_end(pool)
    assert pool.try_remove_drained() == [1]


def test_draining_workers_are_not_taken_back() -> None:
    pool = fleet(2)
    pool.dispatch(1, request())
    pool.apply_target_count(1)
    assert scaled(pool, 2) == ([2], [], [])
    assert pool.active_worker_ids() == (0, 2)


def test_ids_are_never_used_again_not_even_those_of_cancelled_workers() -> None:
    pool = fleet(1, startup_time=5.0)
    pool.apply_target_count(3)
    pool.apply_target_count(1)
    assert scaled(pool, 2)[0] == [3]


def test_target_zero_leaves_no_active_worker() -> None:
    pool = fleet(2)
    pool.apply_target_count(0)
    assert not pool.has_active_workers and pool.worker_count == 0


def test_ready_is_true_once_and_false_for_cancelled_unknown_or_ready_ids() -> None:
    pool = fleet(1, startup_time=5.0)
    pool.apply_target_count(3)
    pool.apply_target_count(2)
    assert pool.mark_worker_ready(1)
    assert not pool.mark_worker_ready(1)
    assert not pool.mark_worker_ready(2)
    assert not pool.mark_worker_ready(99)
    assert pool.active_worker_ids() == (0, 1)


def test_a_request_over_the_budget_without_chunking_starts_nothing_also_on_retry() -> None:
    pool = fleet(enable_chunked_prefill=False, max_num_batched_tokens=8)
    pool.dispatch(0, request(input_tokens=16))
    for _ in range(2):
        assert pool.drive_ready(0.0, FOREVER, collector()) is None
        (state,) = pool.states()
        assert (state.busy, state.in_flight, state.ready, state.drained) == (False, 1, True, False)


def test_passes_of_no_time_complete_at_once_as_long_as_they_do_something() -> None:
    pool = fleet(worker_type="decode", max_num_batched_tokens=8)
    pool.workers[0].scheduler.records_stats = True
    pool.dispatch(0, request(input_tokens=20, output_tokens=1))
    seen = []
    for _ in range(3):
        completion = pool.drive_ready(0.0, FOREVER, collector())
        assert completion is not None
        step = completion.step
        assert step.stats is not None
        seen.append((completion.immediate, step.admissions, step.stats.num_prefill_requests))
        ended = pool.on_completion(completion, step.end_ms)
    assert seen == [(True, 1, 1), (True, 0, 1), (False, 0, 1)]
    assert [rejected for _, rejected in ended] == [False]
    assert pool.in_flight == 0 and pool.is_drained


def test_a_visible_fleet_needs_a_collector_and_a_hidden_one_does_not() -> None:
    visible, hidden = fleet(), fleet(visible=False)
    visible.dispatch(0, request())
    hidden.dispatch(0, request())
    with pytest.raises(SimulationError, match="requires a collector"):
        visible.drive_ready(0.0, FOREVER)
    assert hidden.drive_ready(0.0, FOREVER) is not None


def test_driving_starts_the_idle_worker_with_the_lowest_id() -> None:
    pool = fleet(3)
    for index, worker_id in enumerate((2, 0)):
        pool.dispatch(worker_id, request(index=index))
    started = [pool.drive_ready(0.0, FOREVER, collector()) for _ in range(3)]
    assert [completion and completion.worker_id for completion in started] == [0, 2, None]
    assert pool.is_busy(0) and pool.is_busy(2) and not pool.is_busy(1)


def test_in_flight_falls_only_at_the_completion() -> None:
    pool = fleet()
    pool.dispatch(0, request(output_tokens=1))
    completion = pool.drive_ready(0.0, FOREVER, collector())
    assert completion is not None and pool.in_flight == 1 and pool.is_busy(0)
    ((ended, rejected),) = pool.on_completion(completion, completion.step.end_ms)
    assert pool.in_flight == 0 and ended.outcome is Outcome.COMPLETED and not rejected


def test_a_request_that_can_never_fit_is_rejected_in_a_pass_of_no_time() -> None:
    pool = fleet(num_gpu_blocks=2)
    pool.dispatch(0, request(input_tokens=9))
    completion = pool.drive_ready(3.0, FOREVER, collector())
    assert completion is not None and completion.immediate
    ((ended, rejected),) = pool.on_completion(completion, 3.0)
    assert rejected and ended.outcome is Outcome.REJECTED and ended.first_admit_ms is None


def test_unknown_workers_and_wrong_stages_are_errors() -> None:
    pool = fleet()
    with pytest.raises(SimulationError, match="unknown worker"):
        pool.dispatch(7, request())
    with pytest.raises(SimulationError, match="unknown worker"):
        pool.is_busy(7)
    pool.dispatch(0, request())
    completion = pool.drive_ready(0.0, FOREVER, collector())
    assert completion is not None
    with pytest.raises(SimulationError, match="expected Aggregated, got Decode"):
        pool.on_completion(Completion(Stage.DECODE, 0, completion.step), 1.0)
    with pytest.raises(SimulationError, match="unknown worker"):
        pool.on_completion(Completion(Stage.AGGREGATED, 5, completion.step), 1.0)
