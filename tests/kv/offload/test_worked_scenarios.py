"""The worked scenarios of `spec 11, 12`, to the last digit.

A prompt is a list of blocks of four equal tokens. Unless said otherwise a block takes 1 ms on a link where it is
alone, and there is one worker, which polls its tiers when a pass starts.
"""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.engine.build import offload_settings, scheduler_factory
from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from dynamo_sim.kv.offload.shared import SharedTiers
from dynamo_sim.report.result import RunResult
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.simulation import run
from dynamo_sim.workload.request import Request

LINKS = ("g1_to_g2", "g2_to_g1", "g2_to_g3", "g3_to_g2", "g2_to_g4", "g4_to_g2")

Row = tuple[float, float, float, int]
"""First admission, first token, last token in ms; reused tokens."""


def scenario(
    records: list[tuple[float, list[int], int]], fleet: dict[str, Any], passes: int, **engine: Any
) -> Scenario:
    """Records are time in ms, blocks of the prompt, output tokens."""
    arguments = {
        "block_size": 4,
        "kv_bytes_per_token": 250_000,
        "num_g2_blocks": 16,
        **{f"bandwidth_{link}_gbps": 1.0 for link in LINKS},
        **engine,
    }
    rows = [
        {"timestamp": at, "input_length": 4 * len(blocks), "output_length": output, "hash_ids": blocks}
        for at, blocks, output in records
    ]
    routing = fleet.pop("routing", "round_robin")
    return Scenario.from_dict(
        {
            "name": "worked",
            "workload": {"kind": "trace", "format": "mooncake", "trace_block_size": 4, "records": rows},
            "fleet": {"offload": True, "engine": arguments, **fleet},
            "routing": {"mode": routing},
            "limits": {"max_stretch_passes": passes},
        }
    )


def rows(result: RunResult) -> list[Row]:
    seen = []
    for r in result.records.requests:
        assert r.first_admit_ms is not None and r.first_token_ms is not None and r.last_token_ms is not None
        seen.append((r.first_admit_ms, r.first_token_ms, r.last_token_ms, r.reused_tokens))
    return seen


@pytest.fixture(params=[1, 1_000_000], ids=["pass by pass", "stretches"])
def passes(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def served(passes: int, *records: tuple[float, list[int], int], **engine: Any) -> list[Row]:
    """What one worker of the plain runtime answers."""
    return rows(run(scenario(list(records), {}, passes, **engine)))


ABA = ((0, [1, 2, 3, 4], 2), (100, [11, 12, 13, 14], 2), (200, [1, 2, 3, 4], 2))


def test_12_1_a_destination_waits_for_the_copy_of_what_it_evicts() -> None:
    args = EngineArgs(
        block_size=4,
        num_gpu_blocks=1,
        num_g2_blocks=4,
        kv_bytes_per_token=5_000_000,
        bandwidth_g1_to_g2_gbps=1.0,
        worker_type="decode",
    )
    worker = scheduler_factory(args, shared_tiers=SharedTiers(offload_settings(args)))(0)
    assert isinstance(worker, VllmScheduler)
    worker.pool.release(_filled(worker))
    destination = Request(1, 0.0, 4, 4, ((2, 4),))
    assert worker.handoffs.reserve_destination(destination)
    assert worker.lower_tiers is not None
    worker.lower_tiers.poll(0.0)
    assert worker.handoffs.attempt() is None
    assert worker.lower_tiers.deadline_ms == 20.0
    assert worker.lower_tiers.poll(20.0)
    assert worker.pool.free == 1
    reserved = worker.handoffs.attempt()
    assert reserved is not None and reserved.request is destination


def _filled(worker: VllmScheduler) -> Any:
    """The table of a prompt of one block, which the worker holds."""
    table = worker.handoffs._sequence(Request(0, 0.0, 4, 1, ((1, 4),)), 1).table
    worker.pool.take(table, 1)
    return table


def test_12_2_a_prefix_on_the_gpu_and_the_rest_on_the_host(passes: int) -> None:
    assert served(passes, *ABA, num_gpu_blocks=8) == [
        (0.0, 43.054463, 72.496026, 0),
        (100.0, 143.054463, 172.496026, 0),
        (201.0, 228.31, 257.75156300000003, 16),
    ]


def test_12_2_is_the_same_in_the_event_runtime(passes: int) -> None:
    events = scenario(list(ABA), {"routing": "kv_router"}, passes, num_gpu_blocks=8)
    assert rows(run(events)) == served(passes, *ABA, num_gpu_blocks=8)


def test_12_3_a_request_waits_for_every_batch_of_its_lease(passes: int) -> None:
    answer = served(
        passes,
        (0, [1, 2, 3], 2),
        (100, [11, 12, 13], 2),
        (101, [1, 2], 2),
        num_gpu_blocks=4,
        offload_batch_size=1,
        bandwidth_g1_to_g2_gbps=0.1,
    )
    assert answer[1:] == [
        (120.0, 168.452432, 202.46243199999998, 0),
        (214.46243199999998, 250.77243199999998, 282.541182, 8),
    ]


BUSY = ((0, [1, 2, 3], 2), (100, [21], 8), (110, [11, 12, 13, 14], 2))
SLOW = {"num_gpu_blocks": 7, "offload_batch_size": 1, "bandwidth_g1_to_g2_gbps": 0.1}


def test_12_4_the_plain_runtime_sees_a_landing_when_a_pass_starts(passes: int) -> None:
    assert served(passes, *BUSY, **SLOW)[1:] == [
        (100.0, 129.492568, 366.870908, 0),
        (181.849915, 366.870908, 398.056826, 16),
    ]


def test_12_4_the_event_runtime_sees_a_landing_when_it_happens(passes: int) -> None:
    events = scenario(list(BUSY), {"routing": "kv_router"}, passes, **SLOW)
    assert rows(run(events))[1:] == [
        (100.0, 129.492568, 347.16968399999996, 0),
        (157.690527, 240.68152, 378.355602, 16),
    ]


def test_12_5_a_blocked_request_stops_those_behind_it_from_being_scheduled(passes: int) -> None:
    answer = served(
        passes,
        (0, [1, 2, 3, 4], 2),
        (100, [11, 12], 10),
        (101, [21], 10),
        num_gpu_blocks=8,
        bandwidth_g1_to_g2_gbps=0.02,
    )
    assert answer[1:] == [
        (100.0, 134.256664, 474.92976200000004, 0),
        (134.256664, 232.880387, 608.3697599999999, 0),
    ]


def test_12_6_without_room_on_the_host_evicted_blocks_are_dropped(passes: int) -> None:
    answer = served(
        passes,
        (0, [1, 2, 3, 4, 5], 1),
        (100, [11, 12, 13, 14], 1),
        (200, [1, 2, 3, 4, 5], 1),
        num_gpu_blocks=6,
        num_g2_blocks=3,
    )
    assert answer[1:] == [(103.0, 150.05113, 150.05113, 0), (204.0, 253.435493, 253.435493, 16)]


def test_12_7_blocks_in_progress_count_twice(passes: int) -> None:
    answer = served(
        passes,
        (0, [1, 2, 3, 4, 5, 6], 1),
        (100, [11, 12, 13], 1),
        (101, [21, 22, 23], 1),
        num_gpu_blocks=7,
        num_g2_blocks=4,
        bandwidth_g1_to_g2_gbps=0.1,
    )
    assert [last for _, _, last, _ in answer[1:]] == [169.806947, 210.65001700000002]


def test_12_8_the_host_loses_what_it_needs(passes: int) -> None:
    answer = served(
        passes,
        (0, [1, 2], 2),
        (100, [11, 12], 2),
        (200, [21, 22], 2),
        (300, [1, 2], 2),
        (400, [11, 12], 2),
        num_gpu_blocks=3,
        num_g2_blocks=3,
    )
    assert answer[3:] == [
        (302.0, 348.868827, 382.878827, 4),
        (401.0, 447.929581, 481.939581, 0),
    ]


def test_12_9_a_preemption_gives_no_room_at_once(passes: int) -> None:
    answer = served(passes, (0, [1, 2, 3], 2), (100, [11, 12], 9), (101, [21, 22], 9), num_gpu_blocks=6)
    assert answer[1:] == [
        (100.0, 137.506247, 408.985828, 0),
        (170.37958, 252.74916000000002, 655.0146559999998, 4),
    ]


def test_12_10_two_workers_share_a_disk(passes: int) -> None:
    two_workers = scenario(
        [
            (0, [1, 2, 3], 2),
            (1, [5, 6, 7], 2),
            (100, [11, 12, 13], 2),
            (101, [15, 16, 17], 2),
            (300, [5, 6, 7], 2),
            (301, [9], 2),
        ],
        {"workers": 2},
        passes,
        num_gpu_blocks=4,
        num_g2_blocks=8,
        num_g3_blocks=32,
        bandwidth_g2_to_g3_gbps=0.5,
        bandwidth_g3_to_g2_gbps=0.5,
    )
    assert rows(run(two_workers))[4:] == [
        (311.0, 343.76875, 377.77875, 12),
        (301.0, 335.19591, 361.50591000000003, 0),
    ]


def test_12_10_a_run_that_does_not_begin_on_the_disk_is_not_staged(passes: int) -> None:
    small = scenario(
        [
            (0, [1, 2, 3], 2),
            (1, [5, 6, 7], 2),
            (100, [11, 12, 13], 2),
            (101, [15, 16, 17], 2),
            (300, [5, 6, 7], 2),
        ],
        {"workers": 2},
        passes,
        num_gpu_blocks=4,
        num_g2_blocks=8,
        num_g3_blocks=8,
        bandwidth_g2_to_g3_gbps=0.5,
        bandwidth_g3_to_g2_gbps=0.5,
    )
    assert rows(run(small))[4][3] == 0


def test_12_11_a_reservation_to_stage_takes_the_room_of_evicted_blocks(passes: int) -> None:
    answer = served(
        passes,
        (0, [1, 2], 2),
        (100, [11, 12], 2),
        (200, [21, 22], 2),
        (300, [1, 2], 2),
        num_gpu_blocks=3,
        num_g2_blocks=2,
        num_g3_blocks=8,
    )
    assert answer[3] == (304.0, 335.306667, 369.316667, 8)
