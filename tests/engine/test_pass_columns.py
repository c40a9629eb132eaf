"""What is recorded of passes, and the columns that come of it."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.engine.build import scheduler_factory
from dynamo_sim.engine.pass_columns import pass_columns
from dynamo_sim.engine.pass_log import PassLog
from dynamo_sim.scenario.engine_args import EngineArgs
from tests.engine.twins import serve
from tests.helpers import note_passes, request

SMALL = {"block_size": 4, "num_gpu_blocks": 24, "max_num_batched_tokens": 40}


def test_passes_are_in_order_of_their_ends_then_of_workers() -> None:
    second, first = PassLog(1, 4), PassLog(0, 4)
    note_passes(second, 0.0, [1.0, 3.0])
    note_passes(first, 0.0, [3.0, 4.0])
    columns = pass_columns([second, first])
    assert columns["end_ms"].tolist() == [1.0, 3.0, 3.0, 4.0]
    assert columns["worker_id"].tolist() == [1, 0, 1, 0]
    assert columns["start_ms"].tolist() == [0.0, 0.0, 1.0, 3.0]


@pytest.mark.parametrize("engine_type", ["vllm", "trtllm", "sglang"])
@pytest.mark.parametrize("foresees", [False, True])
def test_columns_agree_with_the_metrics_of_a_planner(engine_type: str, foresees: bool) -> None:
    args = EngineArgs(engine_type=engine_type, **SMALL)
    scheduler: Any = scheduler_factory(args)(3)
    scheduler.records_stats = True
    log = scheduler.record_passes(3)
    requests = [request(6 + 5 * n % 17, 3 + 7 * n % 19, n) for n in range(25)]
    for number, one in enumerate(requests):
        one.arrival_ms = 13.0 * number
    expected = []
    for step in serve(scheduler, requests, 1000, foresees=foresees):
        for index, end_ms in enumerate(step.ends_ms):
            stats, place = step.stats_of(index)
            expected.append(
                (
                    end_ms,
                    stats.num_prefill_requests,
                    stats.sum_prefill_tokens,
                    stats.sum_prefill_kv_tokens,
                    stats.num_decode_requests,
                    stats.sum_decode_kv_tokens + place * stats.decode_kv_growth,
                    step.tokens,
                    stats.num_queued_prefill + stats.num_queued_decode,
                    stats.used_kv_tokens[place],
                )
            )
    columns = pass_columns([log])
    assert scheduler.preemptions or engine_type != "vllm"
    assert set(columns.pop("worker_id")) == {3}
    del columns["start_ms"]
    assert list(zip(*(column.tolist() for column in columns.values()), strict=True)) == expected
