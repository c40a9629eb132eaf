"""Small random cases under pressure, the same ones for the same seed.

Pools that hold a few prompts only, budgets that cut batches, bursts, shared beginnings, conversations, fleets that
grow and shrink under load: what golden cases miss is found by thousands of these.
"""

from __future__ import annotations

import random
from typing import Any

Case = dict[str, Any]


def build(seed: int, index: int) -> Case:
    """Case ``index`` of ``seed``."""
    draw = random.Random(f"{seed}/{index}")
    kind = draw.choice(["vllm", "vllm", "vllm", "trtllm", "sglang"])
    longest_input = draw.choice([24, 80, 200])
    longest_output = draw.choice([3, 10, 30])
    workload = random_workload(draw, longest_input, longest_output)
    longest = longest_request(workload)
    case: Case = {
        "name": f"random-{seed}-{index}",
        "workload": workload,
        "engine": engine_under_pressure(draw, kind, longest),
        "workers": draw.choice([1, 1, 2, 3]),
    }
    if draw.random() < 0.35:
        _scale(draw, case)
    else:
        if draw.random() < 0.25:
            case["concurrency"] = draw.randint(1, 5)
        elif draw.random() < 0.25:
            case["speedup"] = draw.choice([0.5, 3.0])
        if workload["kind"] == "trace" and draw.random() < 0.25:
            case["max_sim_time_ms"] = round(draw.uniform(5.0, 400.0), 3)
    if draw.random() < 0.3:
        case["sla"] = {"ttft_ms": round(draw.uniform(10, 200), 3), "itl_ms": round(draw.uniform(4, 20), 3)}
    if draw.random() < 0.25:
        let_times_coincide(case)
    if workload["kind"] == "trace" and kind != "sglang" and draw.random() < 0.25:
        _have_one_rejected(draw, case)
    return case


def random_workload(draw: random.Random, longest_input: int, longest_output: int) -> Case:
    """Requests one by one, conversations, or a synthetic load; lengths in tokens."""
    make = draw.choice([_single_turns, _single_turns, _sessions, _synthetic])
    return make(draw, longest_input, longest_output)


def let_times_coincide(case: Case) -> None:
    """Passes of 10 and 5 ms, and everything else on the same grid."""
    for engine in (case[name] for name in ("engine", "prefill", "decode") if name in case):
        engine |= {
            "speedup_ratio": 1.0,
            "decode_speedup_ratio": 1.0,
            "planner_profile_data": {
                "prefill_isl": [0.0, 1000.0],
                "prefill_ttft_ms": [10.0, 10.0],
                "decode_active_kv_tokens": [0.0, 1000.0],
                "decode_context_length": [0.0, 1000.0],
                "decode_itl": [[5.0, 5.0], [5.0, 5.0]],
            },
        }
    case.pop("speedup", None)
    for record in case["workload"].get("records", ()):
        for name in ("timestamp", "delay"):
            if name in record:
                record[name] = 5.0 * round(record[name] / 5.0)
    times = sorted({5.0 * round(step["at_ms"] / 5.0) for step in case.get("scaling", ())})
    if times:
        case["scaling"] = [
            {**step, "at_ms": at_ms} for step, at_ms in zip(case["scaling"], times, strict=False)
        ]
        case["poll_ms"] = 25.0
    if "max_sim_time_ms" in case:
        case["max_sim_time_ms"] = 5.0 * round(case["max_sim_time_ms"] / 5.0)


def _have_one_rejected(draw: random.Random, case: Case) -> None:
    """Make one prompt longer than the whole pool; who follows in its conversation arrives at once."""
    engine, workload = case["engine"], case["workload"]
    record = draw.choice(workload["records"])
    record["input_length"] = engine["block_size"] * (engine["num_gpu_blocks"] + 1)
    count = -(-record["input_length"] // workload["block_size"])
    record["hash_ids"] = list(range(10**6, 10**6 + count))


def _times(draw: random.Random, count: int) -> list[float]:
    gap = draw.choice([1.0, 8.0, 40.0])
    times, now = [], 0.0
    while len(times) < count:
        burst = draw.choice([1, 1, 4])
        for _ in range(burst):
            times.append(round(now, 3))
            now += draw.choice([0.0, 0.25, 0.001])
        now += draw.expovariate(1.0 / gap)
    return times[:count]


class _Content:
    """Prompts as hash ids: a few documents whose beginnings are shared, then ids of their own."""

    def __init__(self, draw: random.Random, block: int, longest_input: int) -> None:
        self.draw = draw
        self.block = block
        self.most = max(1, longest_input // block)
        self.next_id = 1
        self.sharing = draw.choice([0.0, 0.6, 1.0])
        self.documents = [self.new_ids(self.most) for _ in range(2)]

    def new_ids(self, count: int) -> list[int]:
        self.next_id += count
        return list(range(self.next_id - count, self.next_id))

    def prompt(self) -> tuple[list[int], int]:
        draw = self.draw
        blocks = draw.randint(1, self.most)
        ids: list[int] = []
        if draw.random() < self.sharing:
            ids = draw.choice(self.documents)[: draw.randint(1, blocks)]
        ids = ids + self.new_ids(blocks - len(ids))
        return ids, self.cut(ids)

    def cut(self, ids: list[int]) -> int:
        return len(ids) * self.block - (
            self.draw.randint(0, self.block - 1) if self.draw.random() < 0.5 else 0
        )


def _single_turns(draw: random.Random, longest_input: int, longest_output: int) -> Case:
    content = _Content(draw, draw.choice([3, 4, 8, 16]), longest_input)
    records = []
    for at_ms in _times(draw, draw.randint(3, 25)):
        ids, length = content.prompt()
        output = draw.randint(1, longest_output)
        record = {"timestamp": at_ms, "input_length": length, "output_length": output, "hash_ids": ids}
        if draw.random() < 0.1:
            record["output_token_ids"] = [draw.randint(1, 3) for _ in range(output)]
        records.append(record)
    return {"kind": "trace", "format": "mooncake", "block_size": content.block, "records": records}


def _sessions(draw: random.Random, longest_input: int, longest_output: int) -> Case:
    content = _Content(draw, draw.choice([4, 8]), max(8, longest_input // 3))
    records = []
    for number, start_ms in enumerate(_times(draw, draw.randint(2, 7))):
        ids: list[int] = []
        for turn in range(draw.randint(1, 3)):
            ids = ids + content.prompt()[0] if turn else content.prompt()[0]
            record: dict[str, Any] = {
                "session_id": f"s{number}",
                "input_length": content.cut(ids),
                "output_length": draw.randint(1, longest_output),
                "hash_ids": ids,
            }
            record |= (
                {"delay": draw.choice([0, round(draw.uniform(0, 90), 3)])}
                if turn
                else {"timestamp": start_ms}
            )
            records.append(record)
    return {"kind": "trace", "format": "mooncake", "block_size": content.block, "records": records}


def _synthetic(draw: random.Random, longest_input: int, longest_output: int) -> Case:
    workload: Case = {
        "kind": "synthetic",
        "input_tokens": draw.randint(1, longest_input),
        "output_tokens": draw.randint(1, longest_output),
        "request_count": draw.randint(2, 25),
        "arrival_interval_ms": draw.choice([0.0, 3.0, 17.3]),
    }
    if draw.random() < 0.5:
        workload |= {"shared_prefix_ratio": draw.choice([0.3, 0.7, 1.0]), "num_prefix_groups": 1}
    if draw.random() < 0.4:
        workload |= {"turns_per_session": 2, "inter_turn_delay_ms": draw.choice([0.0, 31.5])}
    return workload


def longest_request(workload: Case) -> int:
    if workload["kind"] == "synthetic":
        return int(workload["input_tokens"] + workload["output_tokens"])
    return max(record["input_length"] + record["output_length"] for record in workload["records"])


def engine_under_pressure(draw: random.Random, kind: str, longest: int) -> Case:
    block = draw.choice([1, 4, 16]) if kind == "sglang" else draw.choice([2, 4, 16])
    room = draw.choice([1.8, 3.0, 8.0]) if kind == "sglang" else draw.choice([1.1, 1.5, 3.0, 8.0])
    engine: Case = {
        "engine_type": kind,
        "block_size": block,
        "num_gpu_blocks": max(-(-longest // block) + 2, int(longest * room / block)),
        "max_num_seqs": draw.choice([1, 3, 8, 256]),
        "speedup_ratio": draw.choice([1.0, 1.0, 3.7]),
        "decode_speedup_ratio": draw.choice([1.0, 1.0, 2.0]),
    }
    if kind == "sglang":
        engine["sglang"] = {
            "schedule_policy": draw.choice(["fifo", "lpm"]),
            "chunked_prefill_size": block * draw.choice([2, 8, 512]),
            "clip_max_new_tokens": draw.choice([4, 4096]),
        }
        return engine
    engine["max_num_batched_tokens"] = draw.choice([16, 64, 256, 8192])
    engine["enable_prefix_caching"] = draw.random() < 0.8
    engine["preemption_mode"] = draw.choice(["lifo", "fifo"])
    if draw.random() < 0.2:
        engine |= {"enable_chunked_prefill": False, "max_num_batched_tokens": max(longest, 64)}
    if draw.random() < 0.15:
        engine |= {"aic_nextn": draw.randint(1, 3), "decode_speedup_ratio": 1.0}
    return engine


def _scale(draw: random.Random, case: Case) -> None:
    case["poll_ms"] = draw.choice([25.0, 60.0, 133.3])
    case["scaling"] = [
        {"at_ms": round(draw.uniform(1, 400), 3), "decode": draw.randint(1, 4)}
        for _ in range(draw.randint(0, 4))
    ]
    if draw.random() < 0.6:
        case["engine"]["startup_time"] = draw.choice([0.01, 0.06, 0.2])
