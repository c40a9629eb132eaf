"""The loads of the side-by-side benchmark, as cases in the shared format."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

Case = dict[str, Any]


def synthetic(
    requests: int, input_tokens: int, output_tokens: int, workers: int, interval_ms: float, **engine: Any
) -> Case:
    """Requests of one length at one interval, all different, round robin."""
    return {
        "workload": {
            "kind": "synthetic",
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "request_count": requests,
            "arrival_interval_ms": interval_ms,
        },
        "engine": {"block_size": 64, "num_gpu_blocks": 16384, **engine},
        "workers": workers,
    }


def two_fleets(requests: int, prefill: int, decode: int, interval_ms: float, **engine: Any) -> Case:
    """Requests of 2048/256 on a prefill and a decode fleet, with 128 kB of KV a token sent at 25 GB/s."""
    engine = {"block_size": 64, "num_gpu_blocks": 16384, **engine}
    case = synthetic(requests, 2048, 256, 1, interval_ms)
    return {
        "workload": case["workload"],
        "prefill": {
            **engine,
            "worker_type": "prefill",
            "kv_bytes_per_token": 131072,
            "kv_transfer_bandwidth": 25.0,
        },
        "decode": {**engine, "worker_type": "decode"},
        "prefill_workers": prefill,
        "decode_workers": decode,
    }


def pressure(requests: int = 4000) -> Case:
    """Prompts and answers of mixed length in pools that hold about forty of them: preemptions all the time."""
    draw = random.Random("pressure")
    records = [
        {
            "timestamp": index * 30.0,
            "input_length": draw.randint(200, 1500),
            "output_length": draw.randint(50, 800),
            "hash_ids": [index * 3 + part for part in range(3)],
        }
        for index in range(requests)
    ]
    return {
        "workload": {"kind": "trace", "format": "mooncake", "block_size": 512, "records": records},
        "engine": {"block_size": 64, "num_gpu_blocks": 640},
        "workers": 4,
    }


def router() -> Case:
    """Prompts whose first half is shared in 20 groups, on eight workers behind the cache-aware router."""
    case = synthetic(10_000, 4096, 256, 8, 20.0)
    case["workload"] |= {"shared_prefix_ratio": 0.5, "num_prefix_groups": 20}
    return {**case, "router_mode": "kv_router"}


def conversation(path: Path, workers: int = 8, router_mode: str = "round_robin") -> Case:
    """A Mooncake trace."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    records = [json.loads(line) for line in data.splitlines() if line.strip()]
    return {
        "workload": {"kind": "trace", "format": "mooncake", "block_size": 512, "records": records},
        "engine": {"block_size": 64, "num_gpu_blocks": 16384},
        "workers": workers,
        "router_mode": router_mode,
    }


LOADS = {
    "decode-1024-128": lambda: synthetic(10_000, 1024, 128, 8, 5.0),
    "decode-512-512": lambda: synthetic(10_000, 512, 512, 16, 5.0),
    "decode-4096-256": lambda: synthetic(20_000, 4096, 256, 16, 10.0),
    "fleet-of-100": lambda: synthetic(100_000, 256, 64, 100, 1.0),
    "disagg-4-12": lambda: two_fleets(10_000, 4, 12, 25.0),
    "disagg-100-300": lambda: two_fleets(30_000, 100, 300, 1.0),
    "disagg-sglang-4-12": lambda: two_fleets(
        10_000, 4, 12, 25.0, engine_type="sglang", block_size=16, num_gpu_blocks=65536
    ),
    "pressure": pressure,
    "requests-10k": lambda: synthetic(10_000, 256, 64, 8, 12.0),
    "requests-100k": lambda: synthetic(100_000, 256, 64, 8, 12.0),
    "requests-300k": lambda: synthetic(300_000, 256, 64, 8, 12.0),
    "sglang-1024-128": lambda: synthetic(
        10_000, 1024, 128, 8, 5.0, engine_type="sglang", block_size=16, num_gpu_blocks=65536
    ),
    "sglang-512-512": lambda: synthetic(
        10_000, 512, 512, 16, 5.0, engine_type="sglang", block_size=16, num_gpu_blocks=65536
    ),
    "sglang-4096-256": lambda: synthetic(
        20_000, 4096, 256, 16, 10.0, engine_type="sglang", block_size=16, num_gpu_blocks=65536
    ),
    "sglang-page1": lambda: synthetic(
        1_000, 1024, 128, 8, 5.0, engine_type="sglang", block_size=1, num_gpu_blocks=1048576
    ),
    "router": router,
}
"""Loads by name."""

TRACE_LOADS: dict[str, Callable[[Path], Case]] = {
    "conversation": conversation,
    "conversation-router-8": lambda path: conversation(path, 8, "kv_router"),
    "conversation-router-16": lambda path: conversation(path, 16, "kv_router"),
}
"""Loads that need a trace file."""


def load(name: str, trace: str | None = None) -> Case:
    """The case of that name."""
    if name in LOADS:
        return LOADS[name]()
    if trace is None:
        raise SystemExit(f"the load {name!r} needs --trace FILE (a Mooncake trace, plain or .gz)")
    return TRACE_LOADS[name](Path(trace))
