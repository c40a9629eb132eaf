"""Metric names of serving engines, and which of our metrics they are (`spec 10, 8.4`)."""

from __future__ import annotations

from dataclasses import dataclass

from dynamo_sim.autoscaling.metrics.catalogue import METRICS, Kind

SECONDS = 0.001
"""Times are in seconds there and in milliseconds here."""


@dataclass(frozen=True, slots=True)
class Series:
    """What stands behind a name.

    Attributes:
        metric: ours.
        scale: from our unit to theirs.
        single: one series for the whole fleet (a front door), whose value is the sum over our workers.
        part: ``bucket``, ``sum`` or ``count`` of a histogram; empty for the metric itself.
    """

    metric: str
    scale: float = 1.0
    single: bool = False
    part: str = ""


_ENGINES: dict[str, str] = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:kv_cache_usage_perc": "kv_usage",
    "vllm:gpu_cache_usage_perc": "kv_usage",
    "vllm:time_to_first_token_seconds": "ttft",
    "vllm:inter_token_latency_seconds": "itl",
    "vllm:time_per_output_token_seconds": "itl",
    "vllm:e2e_request_latency_seconds": "e2e",
    "vllm:request_queue_time_seconds": "queue_time",
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:generation_tokens_total": "generated_tokens",
    "vllm:request_success_total": "requests_finished",
    "vllm:num_preemptions_total": "preemptions",
    "vllm:prefix_cache_hits_total": "prefix_hits",
    "vllm:prefix_cache_queries_total": "prefix_queries",
    "sglang:num_running_reqs": "running",
    "sglang:num_queue_reqs": "waiting",
    "sglang:token_usage": "kv_usage",
    "sglang:time_to_first_token_seconds": "ttft",
    "sglang:inter_token_latency_seconds": "itl",
    "sglang:e2e_request_latency_seconds": "e2e",
    "sglang:prompt_tokens_total": "prompt_tokens",
    "sglang:generation_tokens_total": "generated_tokens",
    "sglang:num_requests_total": "requests_finished",
    "sglang:cache_hit_rate": "prefix_hit_rate",
    "dynamo_component_inflight_requests": "in_flight",
    "dynamo_frontend_worker_active_decode_blocks": "active_decode_blocks",
    "dynamo_frontend_worker_active_prefill_tokens": "active_prefill_tokens",
}

_FRONT_DOOR: dict[str, str] = {
    "dynamo_frontend_queued_requests": "waiting",
    "dynamo_frontend_inflight_requests": "in_flight",
    "dynamo_frontend_router_queue_pending_requests": "router_queue",
    "dynamo_frontend_time_to_first_token_seconds": "ttft",
    "dynamo_frontend_inter_token_latency_seconds": "itl",
    "dynamo_frontend_request_duration_seconds": "e2e",
    "dynamo_frontend_output_tokens_total": "generated_tokens",
    "dynamo_frontend_requests_total": "requests_finished",
    "dynamo_component_router_kv_hit_rate": "prefix_hit_rate",
}


def find_series(name: str) -> Series | None:
    """The series of a Prometheus name (``:`` and ``_`` are equal), or None."""
    plain = name.replace(":", "_")
    found = _TABLE.get(plain)
    if found is not None:
        return found
    for part in ("bucket", "sum", "count"):
        base = _TABLE.get(plain.removesuffix(f"_{part}"))
        if plain.endswith(f"_{part}") and base is not None and METRICS[base.metric].kind is Kind.HISTOGRAM:
            return Series(base.metric, base.scale, base.single, part)
    return None


def _table() -> dict[str, Series]:
    table = {}
    for names, single in ((_ENGINES, False), (_FRONT_DOOR, True)):
        for name, metric in names.items():
            scale = SECONDS if METRICS[metric].kind is Kind.HISTOGRAM else 1.0
            table[name.replace(":", "_")] = Series(metric, scale, single)
    return table


_TABLE = _table()
