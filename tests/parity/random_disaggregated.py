"""Small random cases with a prefill and a decode fleet under pressure, the same ones for the same seed."""

from __future__ import annotations

import random

from tests.parity.random_cases import (
    Case,
    engine_under_pressure,
    let_times_coincide,
    longest_request,
    random_workload,
)


def build(seed: int, index: int) -> Case:
    """Case ``index`` of ``seed``."""
    draw = random.Random(f"disaggregated/{seed}/{index}")
    kind = draw.choice(["vllm", "vllm", "sglang"])
    workload = random_workload(draw, draw.choice([24, 80, 200]), draw.choice([3, 10, 30]))
    longest = longest_request(workload)
    case: Case = {"name": f"disaggregated-{seed}-{index}", "workload": workload}
    for side in ("prefill", "decode"):
        case[side] = engine_under_pressure(draw, kind, longest) | {"worker_type": side}
        case[f"{side}_workers"] = draw.choice([1, 1, 2, 3])
    _share_blocks(draw, case, longest)
    if draw.random() < 0.7:
        case["prefill"] |= {
            "kv_bytes_per_token": draw.choice([1_000, 100_000, 1_250_000, 5_000_000]),
            "kv_transfer_bandwidth": draw.choice([0.5, 1.0, 64.0]),
            "kv_transfer_timing_mode": draw.choice(["full_prompt", "destination_missing"]),
        }
    if draw.random() < 0.35:
        _scale(draw, case)
    elif draw.random() < 0.3:
        case["concurrency"] = draw.randint(1, 5)
    elif workload["kind"] == "trace" and draw.random() < 0.25:
        case["max_sim_time_ms"] = round(draw.uniform(5.0, 400.0), 3)
    if (
        "poll_ms" not in case and draw.random() < 0.2
    ):  # one worker a fleet: the reference breaks ties at random
        case |= {"router_mode": "kv_router", "prefill_workers": 1, "decode_workers": 1}
    if draw.random() < 0.4:
        let_times_coincide(case)
    return case


def _share_blocks(draw: random.Random, case: Case, longest: int) -> None:
    """Give both fleets blocks of one size, and pools with room for handoffs in progress; sometimes one is too small."""
    block = case["prefill"]["block_size"]
    for side in ("prefill", "decode"):
        engine = case[side]
        room = draw.choice([2.0, 4.0, 8.0]) if draw.random() < 0.95 else 0.6
        engine["block_size"] = block
        engine["num_gpu_blocks"] = max(2, int(longest * room / block) + 2)
        if "sglang" in engine:
            engine["sglang"]["chunked_prefill_size"] = block * draw.choice([2, 8, 512])


def _scale(draw: random.Random, case: Case) -> None:
    case["poll_ms"] = draw.choice([25.0, 60.0, 133.3])
    case["scaling"] = [
        {"at_ms": round(draw.uniform(1, 400), 3)}
        | {side: draw.randint(1, 3) for side in ("prefill", "decode") if draw.random() < 0.7}
        for _ in range(draw.randint(0, 4))
    ]
    for side in ("prefill", "decode"):
        if draw.random() < 0.5:
            case[side]["startup_time"] = draw.choice([0.01, 0.06, 0.2])
