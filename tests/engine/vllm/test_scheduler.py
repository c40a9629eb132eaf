"""The rules of the vLLM-style scheduler that people ask for first, each in a load of two or three requests.

Whole loads are compared in `test_twin.py` and by the golden cases.
"""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.engine.build import scheduler_factory
from dynamo_sim.engine.step import Step
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.workload.request import Request


class Worker:
    """A worker with blocks of 4 tokens that runs one pass at a time."""

    def __init__(self, *requests: Request, **args: Any) -> None:
        self.scheduler = scheduler_factory(EngineArgs(**{"block_size": 4, "num_gpu_blocks": 8, **args}))(0)
        self.now_ms = 0.0
        for request in requests:
            self.scheduler.receive(request)

    def run_pass(self) -> Step:
        """Run one pass; the next one begins at its end."""
        step = self.scheduler.start(self.now_ms, 1)
        self.scheduler.finish(step)
        self.now_ms = step.end_ms
        return step

    def run(self) -> None:
        """Run until every request has ended."""
        while self.scheduler.request_count:
            self.run_pass()


def request(index: int, input_tokens: int, output_tokens: int = 4, **more: Any) -> Request:
    return Request(index, 0.0, input_tokens, output_tokens, **more)


def test_nobody_overtakes_the_head_of_the_queue() -> None:
    """The rest of the pool is too small for the second request, and would do for the third (`spec 02, 5.3`)."""
    first, large, small = request(0, 20), request(1, 16), request(2, 4)
    worker = Worker(first, large, small)
    assert worker.run_pass().admissions == 1
    worker.run()
    assert first.first_admit_ms < large.first_admit_ms <= small.first_admit_ms


def test_admission_needs_blocks_for_the_known_tokens_and_reserves_none() -> None:
    """There is no watermark: a prompt may take the last block (`spec 02, 8`)."""
    assert Worker(request(0, 16, 1), request(1, 16, 1)).run_pass().admissions == 2
    assert Worker(request(0, 16, 1), request(1, 17, 1)).run_pass().admissions == 1


def test_a_prompt_that_exceeds_the_pool_is_rejected() -> None:
    """It is taken out when it is at the head, in a pass of no time (`spec 02, 8`)."""
    too_long, other = request(0, 33), request(1, 4, 1)
    worker = Worker(too_long, other)
    worker.run()
    assert too_long.first_admit_ms is None and other.last_token_ms is not None


@pytest.mark.parametrize(("mode", "victim"), [("lifo", 2), ("fifo", 0)])
def test_the_victim_of_a_preemption_is_the_latest_or_the_oldest(mode: str, victim: int) -> None:
    """Three requests fill the pool with their prompts, and each needs another block (`spec 02, 7`)."""
    requests = [request(index, 8, 5) for index in range(3)]
    worker = Worker(*requests, num_gpu_blocks=7, preemption_mode=mode)
    while not worker.scheduler.preemptions:
        worker.run_pass()
    assert [each.preemptions for each in requests] == [int(index == victim) for index in range(3)]


def test_a_preempted_request_waits_at_the_head_of_the_queue() -> None:
    """Before one that never ran, which would have room; it keeps what it had generated (`spec 02, 7`)."""
    first, second, third = request(0, 8, 12), request(1, 8, 12), request(2, 8, 1)
    worker = Worker(first, second, third, num_gpu_blocks=5)
    worker.run()
    assert second.preemptions > 0 and second.emitted_tokens == 12
    assert third.first_admit_ms is not None and first.last_token_ms is not None
    assert third.first_admit_ms >= first.last_token_ms


def test_trtllm_sets_all_blocks_aside_and_preempts_nobody() -> None:
    """The output to come counts at the admission (`spec 02, 9`)."""
    requests = [request(index, 8, 12) for index in range(2)]
    worker = Worker(*requests, engine_type="trtllm")
    assert worker.run_pass().admissions == 1
    worker.run()
    assert worker.scheduler.preemptions == 0
    assert requests[0].last_token_ms == requests[1].first_admit_ms


def test_a_prompt_is_chunked_to_what_the_budget_leaves() -> None:
    """Running requests take their tokens first (`spec 02, 5.2 and 6.4`)."""
    worker = Worker(request(0, 8, 4), request(1, 12, 4), max_num_batched_tokens=8)
    worker.scheduler.records_stats = True
    prefilled = [worker.run_pass().stats_of(0)[0].sum_prefill_tokens for _ in range(3)]
    assert prefilled == [8, 7, 5]


def test_without_chunking_a_prompt_waits_for_a_budget_that_takes_it_whole() -> None:
    """Nobody overtakes it meanwhile (`spec 02, 6.3`)."""
    first, second = request(0, 8, 2), request(1, 8, 2)
    worker = Worker(first, second, max_num_batched_tokens=8, enable_chunked_prefill=False)
    worker.run()
    assert second.first_admit_ms == first.last_token_ms


def test_the_pass_that_ends_a_prompt_gives_the_first_token() -> None:
    """After the prefill and the decode duration of the pass (`spec 02, 10`)."""
    only = request(0, 8, 2)
    worker = Worker(only)
    assert worker.run_pass().end_ms == only.first_token_ms
