"""Small random cases of the cache-aware router, the same ones for the same seed.

Shared beginnings, pools that evict, queues, policy files, priorities, fleets that grow and shrink under load. Half of
them begin with one worker and odd weights, so that costs seldom tie.
"""

from __future__ import annotations

import random
from typing import Any

from tests.parity import random_cases

Case = dict[str, Any]


def build(seed: int, index: int) -> Case:
    """Case ``index`` of ``seed``."""
    draw = random.Random(f"router/{seed}/{index}")
    case = random_cases.build(seed + 7_000, index)
    case["name"] = f"router-{seed}-{index}"
    workload = case["workload"]
    if workload["kind"] == "trace" and draw.random() < 0.7:
        workload["records"] = _shared_prompts(draw)
        workload["block_size"] = draw.choice([4, 8])
        _fit(case)
    case["router_mode"] = "kv_router"
    case["router"] = _settings(draw)
    _weaken(draw, case["engine"])
    if draw.random() < 0.6:
        case["workers"] = 1
        for key in ("concurrency", "speedup", "max_sim_time_ms"):
            case.pop(key, None)
        _scale(draw, case)
    elif not (case.get("scaling") or case.get("poll_ms")):
        case["workers"] = draw.choice([2, 2, 3, 4])
    if workload["kind"] == "trace":
        _prioritise(draw, workload["records"], policy="router_policy" in case["router"])
        if draw.random() < 0.1 and "max_sim_time_ms" not in case and not case.get("poll_ms"):
            workload["format"] = "mooncake-delta" if "session_id" in workload["records"][0] else "mooncake"
            _fit(case)
    return case


def _shared_prompts(draw: random.Random) -> list[Case]:
    """Requests of a few groups; each group has its own beginning."""
    groups = [[1000 * g + i for i in range(draw.randint(2, 12))] for g in range(1, draw.randint(2, 5))]
    records, now, next_id = [], 0.0, 1
    gap = draw.choice([1.0, 4.0, 12.0, 40.0])
    for _ in range(draw.randint(6, 40)):
        ids = list(draw.choice(groups))
        ids = ids[: draw.randint(1, len(ids))] if draw.random() < 0.4 else ids
        own = draw.randint(0, 6)
        ids += range(next_id, next_id + own)
        next_id += own
        block = 4
        records.append(
            {
                "timestamp": round(now, 3),
                "input_length": len(ids) * block - draw.choice([0, 0, 1, 3]),
                "output_length": draw.randint(1, 20),
                "hash_ids": ids,
            }
        )
        now += 0.0 if draw.random() < 0.15 else draw.expovariate(1.0 / gap)
    return records


def _fit(case: Case) -> None:
    """Let prompts have as many tokens as their ids stand for, and the pool hold the longest request."""
    workload, engine = case["workload"], case["engine"]
    block = workload["block_size"]
    totals: dict[str, int] = {}
    for number, record in enumerate(workload["records"]):
        ids = len(record["hash_ids"])
        record["input_length"] = min(max(record["input_length"], (ids - 1) * block + 1), ids * block)
        key = record.get("session_id", str(number))
        totals[key] = totals.get(key, 0) + record["input_length"] + record["output_length"]
    longest = max(totals.values())
    engine["num_gpu_blocks"] = max(engine["num_gpu_blocks"], 2 * -(-longest // engine["block_size"]) + 2)
    if not engine.get("enable_chunked_prefill", True):
        engine["max_num_batched_tokens"] = max(engine["max_num_batched_tokens"], longest)


def _weaken(draw: random.Random, engine: Case) -> None:
    """Draw the budget that thresholds count in, also for SGLang, which does not use it."""
    if engine["engine_type"] == "sglang" and draw.random() < 0.5:
        engine["max_num_batched_tokens"] = draw.choice([16, 64, 256])
    if draw.random() < 0.1:
        engine["router_queue_policy"] = draw.choice(["fcfs", "lcfs", "wspt"])


def _settings(draw: random.Random) -> Case:
    settings: Case = {}

    def sometimes(chance: float, key: str, *options: Any) -> None:
        if draw.random() < chance:
            settings[key] = draw.choice(options)

    sometimes(0.5, "overlap_score_credit", 0.0, 0.37, 0.7, 0.91)
    sometimes(0.4, "overlap_score_credit_decay", 0.13, 0.9, 3.7)
    sometimes(0.6, "prefill_load_scale", 0.0, 0.317, 1.4, 2.713)
    sometimes(0.1, "overlap_score_weight", 0.0, 0.5, 2.3)
    sometimes(0.7, "router_queue_threshold", 0.0, 0.1, 0.5, 1.0, None)
    sometimes(0.6, "router_queue_policy", "fcfs", "lcfs", "wspt")
    sometimes(0.1, "router_track_active_blocks", False)
    sometimes(0.1, "router_track_prefill_tokens", False)
    sometimes(0.2, "router_assume_kv_reuse", False)
    if draw.random() < 0.3:
        settings["router_policy"] = _policy(draw)
    return settings


def _policy(draw: random.Random) -> Case:
    buckets = [{"min_tokens": 0, "bucket": "small"}]
    if draw.random() < 0.6:
        buckets.append({"min_tokens": draw.choice([8, 24, 60]), "bucket": "big"})
    families = ["latency", "batch"][: draw.randint(1, 2)]
    classes: list[Case] = [
        {"name": f"{family[0]}-{each['bucket']}", "policy_family": family, "cache_bucket": each["bucket"]}
        for family in families
        for each in buckets
    ]
    if draw.random() < 0.5:
        classes.append({"name": "vip"})
    for each in classes:
        each["quantum"] = draw.choice([1, 16, 64, 200])
        if draw.random() < 0.5:
            each["queue_policy"] = draw.choice(["fcfs", "wspt"])
        if draw.random() < 0.6:
            each["prefill_busy_threshold"] = draw.choice([0, 20, 100])
        if draw.random() < 0.3:
            each["prefill_busy_threshold_frac"] = draw.choice([0.0, 0.3, 1.0])
        if draw.random() < 0.1:
            each["request_queue_limit_per_worker"] = draw.choice([3, 12])
        if draw.random() < 0.1:
            each["raw_isl_token_queue_limit_per_worker"] = draw.choice([100, 900])
        if draw.random() < 0.1:
            each["cached_token_queue_limit_per_worker"] = draw.choice([40, 400])
    return {
        "default_policy_family": families[0],
        "uncached_isl_buckets": buckets,
        "policy_classes": classes,
    }


def _prioritise(draw: random.Random, records: list[Case], policy: bool) -> None:
    names = ["latency", "batch", "vip", "l-small", "unknown"]
    often = draw.choice([0.0, 0.3])
    for record in records:
        if draw.random() < often:
            record["priority"] = draw.choice([-2, 1, 5])
        if draw.random() < often:
            record["strict_priority"] = draw.randint(0, 2)
        if policy and draw.random() < 0.5:
            record["policy_class"] = draw.choice(names)


def _scale(draw: random.Random, case: Case) -> None:
    case["poll_ms"] = draw.choice([25.0, 60.0, 133.3])
    times = sorted(round(draw.uniform(0.5, 300), 3) for _ in range(draw.randint(1, 5)))
    case["scaling"] = [{"at_ms": at_ms, "decode": draw.choice([1, 2, 2, 3, 4])} for at_ms in times]
    if draw.random() < 0.1:
        case["scaling"][draw.randrange(len(times))]["decode"] = 0
        case["scaling"].append({"at_ms": times[-1] + 50.0, "decode": 2})
    case["engine"].pop("startup_time", None)
    if draw.random() < 0.4:
        case["engine"]["startup_time"] = draw.choice([0.01, 0.03, 0.1])
