"""The weighted scorers of the endpoint picker."""

from __future__ import annotations

from collections import Counter

import numpy as np

from dynamo_sim.routing.modes.endpoint_picker import queue_scores
from dynamo_sim.routing.modes.prefix_index import RoutedPrefixIndex
from tests.routing.modes.fakes import FakePool, prompt, router, send


def test_the_queue_score_goes_from_the_longest_to_the_shortest_queue() -> None:
    assert queue_scores(np.array([2.0, 6.0, 4.0])).tolist() == [1.0, 0.0, 0.5]
    assert queue_scores(np.array([3.0, 3.0])).tolist() == [1.0, 1.0]


def test_the_weighted_sum_decides() -> None:
    weights = {"queue": 1.0, "kv_cache_utilization": 1.0, "prefix_cache": 0.0}
    made, pool = router({"mode": "endpoint_picker", "weights": weights}, 3), FakePool.of(3)
    pool.set(0, waiting=0, kv_usage=0.9)  # 1.0 + 0.1
    pool.set(1, waiting=2, kv_usage=0.1)  # 0.5 + 0.9
    pool.set(2, waiting=4, kv_usage=0.0)  # 0.0 + 1.0
    assert send(made, pool, prompt()) == 1


def test_a_worker_that_was_sent_the_prefix_is_preferred() -> None:
    made, pool = router({"mode": "endpoint_picker"}, 4), FakePool.of(4)
    first = send(made, pool, prompt(1, 2, 3))
    assert [send(made, pool, prompt(1, 2, 3, other)) for other in range(10, 20)] == [first] * 10


def test_equal_scores_are_drawn_from_evenly() -> None:
    made, pool = router({"mode": "endpoint_picker"}, 4), FakePool.of(4)
    counts = Counter(send(made, pool, prompt()) for _ in range(4000))
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 16.3  # 3 degrees of freedom, 0.1 %


def test_kv_usage_that_may_have_grown_is_read_where_the_score_could_be_the_highest() -> None:
    weights = {"queue": 0.0, "prefix_cache": 0.0}
    made, pool = router({"mode": "endpoint_picker", "weights": weights}, 3), FakePool.of(3)
    for worker_id, usage in enumerate((0.1, 0.2, 0.9)):
        pool.set(worker_id, in_flight=1, kv_usage=usage)
    assert send(made, pool, prompt(), now_ms=0.0) == 0
    pool.take_changed()
    pool.workers[0].kv_usage = 0.3
    before = pool.looks
    assert send(made, pool, prompt(), now_ms=1.0) == 1
    assert pool.looks - before == 2


def test_the_index_of_routed_prompts_forgets_the_ends_of_old_prompts_first() -> None:
    index, pool = RoutedPrefixIndex(4), FakePool.of(1)
    index.joined(0)
    index.routed(0, [1, 2, 3])
    index.routed(0, [1, 7, 8, 9])  # 6 blocks, 2 too many
    assert index.depths([1, 2, 3], pool).tolist() == [1]
    assert index.depths([1, 7, 8, 9], pool).tolist() == [4]
    index.left(0)
    assert index.depths([1, 7], pool).tolist() == []
