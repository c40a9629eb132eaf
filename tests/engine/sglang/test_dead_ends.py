"""SGLang-style workers that cannot go on say why, and what would help (`spec 05, 13`)."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.errors import SimulationError
from tests.engine.sglang.driver import engine, request
from tests.parity.answer import answer


def refusal(input_tokens: int, output_tokens: int = 2, passes: int = 1, **args: Any) -> str:
    """Why a worker that can start nothing is stuck with such a request."""
    scheduler = engine(**args)
    scheduler.receive(request(0, 0.0, input_tokens, output_tokens))
    now = 0.0
    for _ in range(passes):
        step = scheduler.start(now, 1)
        scheduler.finish(step)
        now = step.end_ms
    assert not step.progress
    return scheduler.stuck_reason()


def test_a_prompt_that_does_not_fit() -> None:
    text = refusal(60, 8, block_size=4, num_gpu_blocks=16)
    assert text == (
        "request 0 is never admitted: it asks for more room than 60 prompt and 8 output tokens take, and of "
        "num_gpu_blocks=16 pages of 4 tokens there are 64 tokens to be had; raise num_gpu_blocks, or lower "
        "clip_max_new_tokens=4096"
    )


def test_a_prompt_that_blocks_itself_half_way() -> None:
    text = refusal(90, 8, passes=4, block_size=4, num_gpu_blocks=16, sglang={"chunked_prefill_size": 16})
    assert (
        "there are 16 tokens to be had, 48 are held by prompts computed in part; raise num_gpu_blocks" in text
    )


def test_limits_that_no_prompt_can_meet() -> None:
    small = {"block_size": 4, "num_gpu_blocks": 64}
    assert "raise it to at least 4" in refusal(9, sglang={"chunked_prefill_size": 0}, **small)
    assert "are more than max_prefill_tokens=8" in refusal(9, sglang={"max_prefill_tokens": 8}, **small)
    assert "give it at least 1" in refusal(0, **small)
    text = refusal(8191, block_size=3, num_gpu_blocks=9000)
    assert "its 8191 prompt tokens are 8193 in whole pages, more than chunked_prefill_size=8192" in text


def test_who_waits_behind_is_counted() -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=4)
    for index in range(3):
        scheduler.receive(request(index, 0.0, 40, 2))
    scheduler.start(0.0, 1)
    assert "request 0 is never admitted and blocks 2 requests behind it" in scheduler.stuck_reason()


def test_an_empty_worker_is_not_stuck() -> None:
    assert engine(block_size=4, num_gpu_blocks=4).stuck_reason() is None


def workload(*records: tuple[float, int, int]) -> dict[str, Any]:
    """A trace of (arrival, input length, output length)."""
    return {
        "kind": "trace",
        "format": "mooncake",
        "block_size": 512,
        "records": [
            {"timestamp": at, "input_length": prompt, "output_length": output, "hash_ids": [index]}
            for index, (at, prompt, output) in enumerate(records)
        ],
    }


@pytest.mark.parametrize("drafts", [{}, {"aic_nextn": 2}])
@pytest.mark.parametrize("max_passes", [1, 1000])
def test_a_request_without_output_ends_the_run_unless_a_cap_does(
    drafts: dict[str, int], max_passes: int
) -> None:
    idle = {
        "workload": workload((0.0, 10, 0), (10.0, 10, 3)),
        "engine": {"engine_type": "sglang", "block_size": 4, "num_gpu_blocks": 64, **drafts},
        "workers": 1,
    }
    assert "request 0 asks for 0 output tokens" in answer(idle, max_stretch_passes=max_passes)["error"]
    capped = answer({**idle, "max_sim_time_ms": 2e6}, max_stretch_passes=max_passes)
    assert capped["report"]["completed_requests"] == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_a_lone_request_that_outgrows_the_pool_ends_the_run(workers: int) -> None:
    tight = {
        "engine_type": "sglang",
        "block_size": 4,
        "num_gpu_blocks": 8,
        "sglang": {"clip_max_new_tokens": 2},
    }
    case = {"workload": workload((0, 20, 40)), "engine": tight, "workers": workers}
    assert "has 32 of its 60 tokens and finds no slot for the next one" in answer(case)["error"]


def test_a_request_for_no_tokens_ends_the_run_unless_a_cap_does() -> None:
    roomy = {"engine_type": "sglang", "block_size": 4, "num_gpu_blocks": 64}
    case: dict[str, Any] = {"workload": workload((0, 20, 0), (5, 20, 3)), "engine": roomy, "workers": 1}
    assert "request 0 asks for 0 output tokens" in answer(case)["error"]
    capped = answer({**case, "max_sim_time_ms": 500.0})
    assert capped["report"]["completed_requests"] == 1


def test_idling_for_ever_is_noticed_by_the_scheduler_itself() -> None:
    scheduler = engine(block_size=4, num_gpu_blocks=4)
    scheduler.receive(request(0, 0.0, 8, 0))
    with pytest.raises(SimulationError, match="asks for 0 output tokens"):
        now = 0.0
        for _ in range(100):
            step = scheduler.start(now, 1 << 20)
            scheduler.finish(step)
            now = step.end_ms
