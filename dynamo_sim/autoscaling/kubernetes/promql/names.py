"""Metric names of serving engines, and which of our metrics they are (`spec 10, 8.4`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dynamo_sim.metric_catalogue import METRICS, Kind

SECONDS = 0.001
"""Times are in seconds there and in milliseconds here."""


@dataclass(frozen=True, slots=True)
class NamedSeries:
    """What stands behind a name.

    Attributes:
        metric: ours.
        scale: from our unit to theirs.
        pooled: how one series for the whole fleet is made of our workers (``sum``: a frontend counts all requests;
            ``avg``: the mean of a pool); empty where every worker has a series of its own.
        part: ``bucket``, ``sum`` or ``count`` of a histogram; empty for the metric itself.
    """

    metric: str
    scale: float = 1.0
    pooled: str = ""
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

_FRONTEND: dict[str, str] = {
    "dynamo_frontend_queued_requests": "waiting",
    "dynamo_frontend_inflight_requests": "in_flight",
    "dynamo_frontend_router_queue_pending_requests": "router_queue",
    "dynamo_frontend_time_to_first_token_seconds": "ttft",
    "dynamo_frontend_inter_token_latency_seconds": "itl",
    "dynamo_frontend_request_duration_seconds": "e2e",
    "dynamo_frontend_output_tokens_total": "generated_tokens",
    "dynamo_frontend_requests_total": "requests_finished",
    "dynamo_component_router_kv_hit_rate": "prefix_hit_rate",
    "inference_extension_flow_control_queue_size": "router_queue",
}

_POOL_MEANS: dict[str, str] = {
    "inference_pool_average_queue_size": "waiting",
    "inference_pool_average_kv_cache_utilization": "kv_usage",
    "inference_pool_average_running_requests": "running",
}

_GOOGLE = re.compile(
    r"prometheus\.googleapis\.com[|/]([^|/]+)[|/](?:gauge|counter|histogram|summary|unknown)"
)
"""As an adapter of Google Cloud names the metric of a managed Prometheus."""


def plain_name(name: str) -> str:
    """The Prometheus name behind a name that an adapter made."""
    google = _GOOGLE.fullmatch(name)
    return google[1] if google else name


def find_series(name: str) -> NamedSeries | None:
    """The series of a Prometheus name, or None; ``:`` and ``_`` are equal, and ``vllm:`` may be left out."""
    plain = plain_name(name).replace(":", "_")
    found = _TABLE.get(plain)
    if found is not None:
        return found
    for part in ("bucket", "sum", "count"):
        base = _TABLE.get(plain.removesuffix(f"_{part}"))
        if plain.endswith(f"_{part}") and base is not None and METRICS[base.metric].kind is Kind.HISTOGRAM:
            return replace(base, part=part)
    return None


def _table() -> dict[str, NamedSeries]:
    table = {}
    for names, pooled in ((_ENGINES, ""), (_FRONTEND, "sum"), (_POOL_MEANS, "avg")):
        for name, metric in names.items():
            scale = SECONDS if METRICS[metric].kind is Kind.HISTOGRAM else 1.0
            table[name.replace(":", "_")] = NamedSeries(metric, scale, pooled)
            if name.startswith("vllm:"):  # an adapter may drop the part before the colon
                table[name.removeprefix("vllm:")] = NamedSeries(metric, scale, pooled)
    return table


_TABLE = _table()
