"""Engine arguments: what they resolve to, and what they accept (`spec 02, 2; 05, 2`)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from dynamo_sim.scenario import EngineArgs


@pytest.mark.parametrize(
    ("given", "block_size"),
    [
        ({}, 64),
        ({"block_size": 0}, 64),
        ({"block_size": 4}, 4),
        ({"engine_type": "trtllm"}, 32),
        ({"engine_type": "sglang"}, 1),
        ({"engine_type": "sglang", "sglang": {"page_size": 16}}, 16),
        ({"engine_type": "sglang", "block_size": 8, "sglang": {"page_size": 8}}, 8),
        ({"engine_type": "sglang", "block_size": 3}, 3),
        ({"sglang": {"page_size": 16}}, 64),
    ],
)
def test_block_size_is_always_the_effective_one(given: dict[str, Any], block_size: int) -> None:
    assert EngineArgs.model_validate(given).block_size == block_size


def test_null_means_default_where_the_reference_says_so() -> None:
    args = EngineArgs.model_validate(
        {"num_gpu_blocks": None, "sglang": None, "trtllm": {"capacity_scheduler_policy": None}}
    )
    assert args.num_gpu_blocks == 16384
    assert args.sglang.chunked_prefill_size == 8192
    assert args.trtllm.capacity_scheduler_policy == "guaranteed_no_evict"


def test_null_means_no_limit_for_batch_bounds() -> None:
    args = EngineArgs.model_validate({"max_num_seqs": None, "max_num_batched_tokens": None})
    assert args.max_num_seqs is None and args.max_num_batched_tokens is None
    assert EngineArgs().max_num_seqs == 256 and EngineArgs().max_num_batched_tokens == 8192


@pytest.mark.parametrize("field", ["block_size", "engine_type", "speedup_ratio", "aic_mtp_seed", "dp_size"])
def test_null_is_refused_elsewhere(field: str) -> None:
    with pytest.raises(ValidationError):
        EngineArgs.model_validate({field: None})


def test_tiers_of_no_blocks_are_no_tiers() -> None:
    args = EngineArgs.model_validate({"num_g2_blocks": 0, "num_g3_blocks": 0, "offload_batch_size": 0})
    assert args.num_g2_blocks is None and args.num_g3_blocks is None and args.offload_batch_size is None


def test_names_may_be_written_in_any_case() -> None:
    args = EngineArgs.model_validate({"engine_type": "SGLang", "preemption_mode": "FIFO"})
    assert args.engine_type == "sglang" and args.preemption_mode == "fifo"


def test_worker_type_wins_over_its_older_spelling() -> None:
    assert EngineArgs(is_prefill=True).worker_type == "prefill"
    assert EngineArgs(is_decode=True).worker_type == "decode"
    assert EngineArgs(is_prefill=True, worker_type="decode").worker_type == "decode"


def test_infinite_speedup_is_allowed_and_nan_is_not() -> None:
    assert EngineArgs(speedup_ratio=math.inf).speedup_ratio == math.inf
    for field in ("speedup_ratio", "startup_time", "kv_transfer_bandwidth"):
        with pytest.raises(ValidationError):
            EngineArgs.model_validate({field: math.nan})


@pytest.mark.parametrize(
    ("drafts", "text", "rates"),
    [
        (None, None, None),
        (2, None, (0.85, 0.3)),
        (5, " ", (0.85, 0.3, 0.0, 0.0, 0.0)),
        (3, "0.5", (0.5, 0.0, 0.0)),
        (1, " +1e-1 , .5, 1.", (0.1,)),
    ],
)
def test_rates_are_cut_or_filled_to_the_drafts(
    drafts: int | None, text: str | None, rates: tuple[float, ...] | None
) -> None:
    assert EngineArgs(aic_nextn=drafts, aic_nextn_accept_rates=text).speculative_rates == rates


@pytest.mark.parametrize("text", ["0.5,", "1_0", "nan", "inf", "0,5,x", "0x1", "0.5,,1"])
def test_rates_that_are_no_numbers_are_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        EngineArgs(aic_nextn=1, aic_nextn_accept_rates=text)


def test_gpus_per_worker_is_tensor_times_attention_parallelism() -> None:
    assert EngineArgs().gpus_per_worker == 1
    assert EngineArgs(aic_tp_size=4, aic_attention_dp_size=2).gpus_per_worker == 8
    assert EngineArgs(aic_attention_dp_size=2).gpus_per_worker == 2


PROFILE = {
    "prefill_isl": [1, 2],
    "prefill_ttft_ms": [1.0, 2.0],
    "decode_active_kv_tokens": [1, 2],
    "decode_context_length": [1, 2],
    "decode_itl": [[1.0, 2.0], [3.0, 4.0]],
}


def test_profile_may_be_written_into_the_scenario() -> None:
    assert EngineArgs(planner_profile_data=PROFILE).planner_profile_data == PROFILE
    assert EngineArgs(planner_profile_data="profile.npz").planner_profile_data == "profile.npz"


@pytest.mark.parametrize(
    "profile",
    [
        5,
        "",
        {},
        {**PROFILE, "more": [1]},
        {**PROFILE, "prefill_isl": [1, "2"]},
        {**PROFILE, "prefill_isl": [1, math.nan]},
    ],
)
def test_profile_of_another_shape_is_refused(profile: Any) -> None:
    with pytest.raises(ValidationError):
        EngineArgs(planner_profile_data=profile)


def test_default_chunk_need_not_fit_the_page_but_a_written_one_must() -> None:
    assert EngineArgs(engine_type="sglang", block_size=3).sglang.chunked_prefill_size == 8192
    with pytest.raises(ValidationError, match="multiple of the block size"):
        EngineArgs.model_validate(
            {"engine_type": "sglang", "block_size": 3, "sglang": {"chunked_prefill_size": 8192}}
        )


def test_engine_args_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        EngineArgs().block_size = 4  # type: ignore[misc]
