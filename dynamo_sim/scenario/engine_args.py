"""The arguments of one engine: names, defaults and checks of the reference (spec 02, 2; 05, 2; 04, 6.1)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_serializer, model_validator
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from dynamo_sim.scenario.base import (
    NULL_IS_DEFAULT,
    AnyCase,
    Count,
    Fraction,
    NonNegative,
    Path,
    PositiveCount,
    Problems,
    Ratio,
    Spec,
)
from dynamo_sim.scenario.files import existing_path

DEFAULT_GPU_BLOCKS = 16384
DEFAULT_BLOCK_TOKENS = {"vllm": 64, "trtllm": 32, "sglang": 1}
POWERS_OF_TWO = tuple(2**exponent for exponent in range(1, 11))
DEFAULT_ACCEPT_RATES = (0.85, 0.3, 0.0, 0.0, 0.0)
PROFILE_ARRAYS = (
    "prefill_isl",
    "prefill_ttft_ms",
    "decode_active_kv_tokens",
    "decode_context_length",
    "decode_itl",
)

Port = Annotated[int, Field(ge=0, le=65535)]
TokenId = Annotated[int, Field(ge=0, le=2**32 - 1)]
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)


def _accept_rates(text: str) -> tuple[float, ...]:
    """The rates of a comma-separated text, DEFAULT_ACCEPT_RATES for a blank one.

    Raises:
        ValueError: an item is no number, or not in 0..1.
    """
    if not text.strip():
        return DEFAULT_ACCEPT_RATES
    rates = []
    for position, item in enumerate(text.split(","), start=1):
        if not _NUMBER.fullmatch(item.strip()) or not 0.0 <= float(item) <= 1.0:
            raise ValueError(
                f"must be numbers from 0 to 1 separated by commas; item {position} is {item.strip()!r}"
            )
        rates.append(float(item))
    return tuple(rates)


def _checked_rates(text: str) -> str:
    _accept_rates(text)
    return text


def _checked_profile(value: Any, info: ValidationInfo) -> Any:
    """A path, or the five arrays of a profile themselves; their shapes are the timing layer's business."""
    if value is None:
        return None
    if isinstance(value, str):
        return existing_path(value, info.context, folders=True)
    if not isinstance(value, Mapping):
        raise ValueError("must be the path of a profile, or a section with its five arrays")
    if set(value) != set(PROFILE_ARRAYS):
        raise ValueError(f"must have exactly the arrays {', '.join(PROFILE_ARRAYS)}")
    if not all(_is_array(value[name]) for name in PROFILE_ARRAYS):
        raise ValueError("must have lists of finite numbers as its arrays")
    return value


def _is_array(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_array(item) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


class SglangArgs(Spec):
    """Arguments of the SGLang-style scheduler alone (spec 05, 2)."""

    schedule_policy: Annotated[str, NULL_IS_DEFAULT] = "fifo"
    """Queue order: "fifo" or "fcfs" (arrival), or "lpm" (longest cached prefix); other words mean fifo."""

    page_size: Count | None = None
    """Tokens per page, another way to give `block_size`; both must agree where both are given."""

    max_prefill_tokens: Annotated[Count, NULL_IS_DEFAULT] = 16384
    """Input tokens a pass may take from the queue."""

    chunked_prefill_size: Annotated[Count, NULL_IS_DEFAULT] = 8192
    """Prompt tokens a pass may compute, and the length above which a prompt is split; whole pages."""

    clip_max_new_tokens: Annotated[Count, NULL_IS_DEFAULT] = 4096
    """Most output tokens ever reserved for one request."""

    schedule_conservativeness: Annotated[float, NULL_IS_DEFAULT] = 1.0
    """Factor of the share of the outputs that is reserved; neither its sign nor its size is checked."""

    @model_serializer(mode="wrap")
    def _leave_out_default_chunk(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The default chunk size need not fit the page, a written one must: do not write it down."""
        data: dict[str, Any] = handler(self)
        if "chunked_prefill_size" not in self.model_fields_set:
            data.pop("chunked_prefill_size", None)
        return data


class TrtllmArgs(Spec):
    """Arguments of the TRT-LLM-style scheduler alone (spec 02, 9)."""

    capacity_scheduler_policy: Annotated[Literal["guaranteed_no_evict"], NULL_IS_DEFAULT] = (
        "guaranteed_no_evict"
    )
    """The one policy there is."""


class ReasoningArgs(Spec):
    """Marks for thinking tokens; without effect in a simulation."""

    start_thinking_token_id: TokenId
    """Token that opens the thinking part."""

    end_thinking_token_id: TokenId
    """Token that closes it."""

    thinking_ratio: float
    """Share of the output spent thinking."""


class EngineArgs(Spec):
    """What every worker of a fleet is.

    After construction `block_size` and `num_gpu_blocks` hold the effective numbers, also where the scenario
    left them to their defaults.
    """

    engine_type: Annotated[Literal["vllm", "sglang", "trtllm"], AnyCase] = "vllm"
    """Scheduler: "vllm", "sglang" or "trtllm"."""

    num_gpu_blocks: Annotated[PositiveCount, NULL_IS_DEFAULT] = DEFAULT_GPU_BLOCKS
    """KV pool of a worker in blocks."""

    block_size: Annotated[int, Field(ge=0, le=2**20)] = 0
    """Tokens per KV block; 0 = the engine's own: vllm 64, trtllm 32, sglang its page_size or 1.
    A power of two from 2 to 1024 for vllm and trtllm."""

    max_num_seqs: PositiveCount | None = 256
    """Most requests running at once; null = no limit."""

    max_num_batched_tokens: PositiveCount | None = 8192
    """Tokens a pass may compute; null = no limit."""

    enable_prefix_caching: bool = True
    """Keep the blocks of finished requests and reuse them for equal prefixes."""

    enable_chunked_prefill: bool = True
    """Split prompts over several passes."""

    preemption_mode: Annotated[Literal["lifo", "fifo"], AnyCase] = "lifo"
    """Whom to evict when blocks run out: the newest running request (lifo) or the oldest (fifo)."""

    speedup_ratio: Ratio = 1.0
    """Divides all pass durations; 0 means no scaling, .inf means passes take no time."""

    decode_speedup_ratio: Ratio = 1.0
    """Divides decode durations further; must stay 1 with `aic_nextn`."""

    dp_size: Annotated[int, Field(ge=1, le=2**32 - 1)] = 1
    """Data-parallel ranks of one engine; a simulation runs 1."""

    startup_time: NonNegative | None = None
    """Seconds a worker added later needs before it serves; the first workers are ready at once."""

    worker_type: Annotated[Literal["aggregated", "prefill", "decode"], AnyCase] = "aggregated"
    """Part the worker plays."""

    is_prefill: bool = False
    """Older way to write `worker_type: prefill`; ignored when `worker_type` is given."""

    is_decode: bool = False
    """Older way to write `worker_type: decode`; ignored when `worker_type` is given."""

    planner_profile_data: Annotated[
        Any,
        BeforeValidator(_checked_profile),
        Field(json_schema_extra={"type": ["string", "object", "null"]}),
    ] = None
    """Measured pass durations: path of an .npz or of a profiler's result folder, or the five arrays
    prefill_isl, prefill_ttft_ms, decode_active_kv_tokens, decode_context_length and decode_itl themselves."""

    aic_backend: str | None = None
    """Durations come from a callback of this name; needs `aic_model_path`."""

    aic_system: str | None = None
    """GPU system of the callback."""

    aic_backend_version: str | None = None
    """Version of the callback's backend."""

    aic_tp_size: Count | None = None
    """Tensor-parallel size; counts in the GPUs per worker."""

    aic_model_path: str | None = None
    """Model of the callback."""

    aic_moe_tp_size: Count | None = None
    """Tensor parallelism of the experts."""

    aic_moe_ep_size: Count | None = None
    """Expert parallelism."""

    aic_attention_dp_size: Count | None = None
    """Attention data parallelism; counts in the GPUs per worker."""

    aic_gemm_dtype: str | None = None
    """Number format of the callback's matrix products."""

    aic_moe_dtype: str | None = None
    """Number format of its experts."""

    aic_fmha_dtype: str | None = None
    """Number format of its attention."""

    aic_kv_cache_dtype: str | None = None
    """Number format of its KV cache."""

    aic_comm_dtype: str | None = None
    """Number format of its communication."""

    aic_nextn: Annotated[int, Field(ge=1, le=5)] | None = None
    """Draft tokens per step; switches speculative decoding on."""

    aic_nextn_accept_rates: Annotated[str, AfterValidator(_checked_rates)] | None = None
    """Chance that each draft is accepted after the ones before, as text: "0.85, 0.3"."""

    aic_mtp_seed: Annotated[int, Field(ge=0, le=2**64 - 1)] = 42
    """Seed of the draft acceptance."""

    gpu_memory_utilization: Fraction | None = None
    """Only for an estimate of `num_gpu_blocks` by the callback."""

    mem_fraction_static: Fraction | None = None
    """Only for an estimate of `num_gpu_blocks` by the callback."""

    free_gpu_memory_fraction: Fraction | None = None
    """Only for an estimate of `num_gpu_blocks` by the callback."""

    enable_local_indexer: bool = False
    """Without effect in a simulation."""

    bootstrap_port: Port | None = None
    """Without effect in a simulation."""

    handoff_session_timeout_ms: PositiveCount = 300_000
    """Without effect in a simulation."""

    kv_bytes_per_token: Count | None = None
    """Bytes of KV per token, for transfers: of a disaggregated fleet, and between cache tiers."""

    kv_transfer_bandwidth: NonNegative | None = None
    """GB/s of those transfers."""

    kv_transfer_timing_mode: Annotated[Literal["full_prompt", "destination_missing"], AnyCase] = "full_prompt"
    """What those transfers carry: the whole prompt, or what the destination has not cached."""

    num_g2_blocks: Count | None = None
    """Blocks of the host tier of the cache (G2), one a worker; 0 = null.
    This and the fields down to G4 act only with `fleet.offload: true`."""

    num_g3_blocks: Count | None = None
    """Blocks of the one disk tier (G3) that all workers share; needs `num_g2_blocks`."""

    enable_g4_storage: bool = False
    """Object store (G4) that all workers share, without a limit; needs `num_g2_blocks`."""

    offload_batch_size: Count | None = None
    """Most blocks of a transfer to a lower tier, and most transfers of a worker at once; 0 = null = 32."""

    bandwidth_g1_to_g2_gbps: NonNegative | None = None
    """GB/s from GPU to host, of each worker; 0 = no limit, null = 14."""

    bandwidth_g2_to_g1_gbps: NonNegative | None = None
    """GB/s from host to GPU, of each worker; 0 = no limit, null = 14."""

    bandwidth_g2_to_g3_gbps: NonNegative | None = None
    """GB/s from host to disk, for all workers together; 0 = no limit, null = 7."""

    bandwidth_g3_to_g2_gbps: NonNegative | None = None
    """GB/s from disk to host, for all workers together; 0 = no limit, null = 7."""

    bandwidth_g2_to_g4_gbps: NonNegative | None = None
    """GB/s from host to the object store, for all workers together; 0 = no limit, null = 4."""

    bandwidth_g4_to_g2_gbps: NonNegative | None = None
    """GB/s from the object store to host, for all workers together; 0 = no limit, null = 4."""

    reasoning: ReasoningArgs | None = None
    """Without effect in a simulation."""

    response_replay_trace_path: str | None = None
    """Without effect in a simulation."""

    zmq_kv_events_port: Port | None = None
    """Without effect in a simulation."""

    zmq_replay_port: Port | None = None
    """Without effect in a simulation."""

    router_queue_policy: Literal["fcfs", "lcfs", "wspt"] | None = None
    """Order of the cache-aware router's queue."""

    sglang: Annotated[SglangArgs, NULL_IS_DEFAULT] = SglangArgs()
    """Arguments of the SGLang-style scheduler."""

    trtllm: Annotated[TrtllmArgs, NULL_IS_DEFAULT] = TrtllmArgs()
    """Arguments of the TRT-LLM-style scheduler."""

    has_perf_model: Any = None
    """Without effect in a simulation."""

    @model_validator(mode="after")
    def _check_and_resolve(self) -> EngineArgs:
        found = list(self._conflicts())
        if found:
            raise Problems(found)
        # Written past the freeze and not into `model_fields_set`, so that a copy with another engine_type
        # gets that engine's defaults again.
        resolved = self.__dict__
        if self.block_size == 0:
            self.__pydantic_fields_set__.discard("block_size")
        resolved["block_size"] = self._block_tokens
        for tier in ("num_g2_blocks", "num_g3_blocks", "offload_batch_size"):
            resolved[tier] = resolved[tier] or None
        if "worker_type" not in self.model_fields_set and (self.is_prefill or self.is_decode):
            resolved["worker_type"] = "prefill" if self.is_prefill else "decode"
        return self

    @property
    def _block_tokens(self) -> int:
        page = self.sglang.page_size if self.engine_type == "sglang" else None
        if self.block_size == 0 and page is not None:
            return page
        return self.block_size or DEFAULT_BLOCK_TOKENS[self.engine_type]

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if self.engine_type == "sglang":
            yield from self._sglang_conflicts()
        elif self.block_size and self.block_size not in POWERS_OF_TWO:
            near = min(POWERS_OF_TWO, key=lambda size: abs(size - self.block_size))
            yield (
                ("block_size",),
                f"found {self.block_size}; must be a power of two from 2 to 1024 for {self.engine_type} "
                f"(the nearest is {near}), or 0 for its default",
            )
        if self.is_prefill and self.is_decode:
            yield ("is_decode",), "cannot be true together with is_prefill"
        if self.aic_nextn is None and self.aic_nextn_accept_rates is not None:
            yield ("aic_nextn_accept_rates",), "needs aic_nextn, the number of draft tokens"
        if self.aic_nextn is not None and self.decode_speedup_ratio != 1.0:
            yield (
                ("decode_speedup_ratio",),
                f"found {self.decode_speedup_ratio:g}; must be 1 with aic_nextn",
            )
        if not self.num_g2_blocks:
            if self.num_g3_blocks:
                yield (
                    ("num_g3_blocks",),
                    "needs num_g2_blocks, because the disk tier is filled from the host tier",
                )
            if self.enable_g4_storage:
                yield (
                    ("enable_g4_storage",),
                    "needs num_g2_blocks, because the object store is filled from the host tier",
                )

    def _sglang_conflicts(self) -> Iterator[tuple[Path, str]]:
        page = self.sglang.page_size
        if page is not None and self.block_size not in (0, page):
            yield ("sglang", "page_size"), f"found {page}; must equal block_size, which is {self.block_size}"
        elif self._block_tokens == 0:
            yield ("sglang", "page_size"), "found 0; must be at least 1"
        elif "chunked_prefill_size" in self.sglang.model_fields_set:
            chunk = self.sglang.chunked_prefill_size
            if chunk % self._block_tokens:
                yield (
                    ("sglang", "chunked_prefill_size"),
                    f"found {chunk}; must be a multiple of the block size, which is {self._block_tokens}",
                )

    @property
    def speculative_rates(self) -> tuple[float, ...] | None:
        """Acceptance rate of each of the `aic_nextn` drafts; None without drafts (spec 04, 6.1)."""
        if self.aic_nextn is None:
            return None
        rates = _accept_rates(self.aic_nextn_accept_rates or "")
        return (rates + (0.0,) * self.aic_nextn)[: self.aic_nextn]

    @property
    def gpus_per_worker(self) -> int:
        """Tensor-parallel times attention data-parallel size, each 1 where not given (spec 09, 2)."""
        tensor = 1 if self.aic_tp_size is None else self.aic_tp_size
        attention = 1 if self.aic_attention_dp_size is None else self.aic_attention_dp_size
        return tensor * attention
