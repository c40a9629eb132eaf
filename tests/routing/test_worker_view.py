"""What a router sees of a worker."""

from __future__ import annotations

from dynamo_sim.routing.worker_view import WorkerView
from tests.helpers import fleet, request


def test_a_view_tells_the_state_of_the_moment_at_which_it_is_read() -> None:
    pool = fleet(1, max_num_seqs=1)
    view = WorkerView(pool.workers[0], lambda: now_ms)
    now_ms = 0.0
    pool.dispatch(0, request(8, 5, index=0))
    pool.dispatch(0, request(6, 5, index=1))
    assert (view.in_flight, view.waiting, view.waiting_tokens, view.kv_usage) == (2, 2, 14, 0.0)
    step = pool.start(pool.workers[0], now_ms, max_passes=1)
    assert step is not None
    assert (view.in_flight, view.waiting, view.waiting_tokens, view.running) == (2, 1, 6, 1)
    now_ms = step.ends_ms[0]
    pool.complete(pool.workers[0], step, now_ms)
    assert view.kv_tokens == 12  # two blocks of the prompt, and one for the answer
    assert view.kv_usage == 12 / view.kv_capacity_tokens
    assert repr(view) == "<worker 0: 1 running, 1 waiting, 5% of the KV cache in use>"
