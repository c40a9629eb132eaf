"""The worker above lower cache tiers against its plain twin, pass by pass, to the last bit (`spec 11`)."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from dynamo_sim.kv.offload.settings import OffloadSettings
from dynamo_sim.kv.offload.shared import SharedTiers
from dynamo_sim.kv.offload.worker_tiers import WorkerTiers
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.timing.build import build_timing
from dynamo_sim.timing.speculative import BurstSampler
from dynamo_sim.workload.request import Request
from tests.engine.twins import random_requests, story
from tests.kv.offload.plain import PlainOffload, PlainShared

LOADS = int(os.environ.get("DYNAMO_SIM_OFFLOAD_LOADS", "150"))
"""How many random loads are compared."""


def load(seed: int) -> tuple[list[Request], EngineArgs, OffloadSettings]:
    """Random requests, a small pool, and small tiers."""
    draw = random.Random(seed)
    size = draw.choice([2, 4, 8])
    requests = random_requests(draw)
    most = max(r.input_tokens + r.output_tokens for r in requests)
    args: dict[str, Any] = {
        "engine_type": draw.choice(["vllm", "vllm", "vllm", "trtllm"]),
        "block_size": size,
        "num_gpu_blocks": max(2, -(-most // size), int(most * draw.choice([0.7, 1.05, 1.3, 2.0]) / size)),
        "max_num_seqs": draw.choice([1, 3, 8, None]),
        "max_num_batched_tokens": draw.choice([5, 16, 40, 8192, None]),
        "enable_prefix_caching": draw.random() < 0.85,
        "enable_chunked_prefill": draw.random() < 0.7,
        "preemption_mode": draw.choice(["lifo", "fifo"]),
    }
    if draw.random() < 0.2:
        args |= {"aic_nextn": draw.randint(1, 4), "aic_nextn_accept_rates": "0.9, 0.7, 0.7"}
    speeds = draw.choice([[1.0], [0.05, 0.2, 1.0], [0.02, 0.1, 5.0], [0.0, 1.0]])
    links: Any = ("g1_to_g2", "g2_to_g1", "g2_to_g3", "g3_to_g2", "g2_to_g4", "g4_to_g2")
    settings = OffloadSettings(
        host_blocks=draw.choice([1, 2, 4, 8, 16, 40]),
        block_bytes=draw.choice([250_000, 1_000_000]) * size,
        disk_blocks=draw.choice([None, 2, 6, 30]),
        object_store=draw.random() < 0.3,
        batch_blocks=draw.choice([1, 2, 3, 32]),
        gbps={link: draw.choice(speeds) for link in links},
    )
    return requests, EngineArgs(**args), settings


def twin(args: EngineArgs, settings: OffloadSettings) -> Any:
    rates = args.speculative_rates
    sampler = None if rates is None else BurstSampler(rates, args.aic_mtp_seed, 0)
    shared = PlainShared(settings, args.block_size, args.enable_prefix_caching)
    return PlainOffload(args, build_timing(args), sampler, settings, shared)


def ours(args: EngineArgs, settings: OffloadSettings) -> Any:
    tiers: WorkerTiers[Any] = WorkerTiers(SharedTiers(settings), settings)
    sampler = None
    if args.speculative_rates is not None:
        sampler = BurstSampler(args.speculative_rates, args.aic_mtp_seed, 0)
    return VllmScheduler(args, build_timing(args), PrefixInterner(args.block_size), sampler, tiers=tiers)


@pytest.mark.parametrize("seed", range(LOADS))
def test_the_worker_does_what_its_twin_does(seed: int) -> None:
    requests, args, settings = load(seed)
    expected = story(twin(args, settings), requests, 1)
    for max_passes, foresees in ((1, False), (1_000_000, True)):
        requests, _, _ = load(seed)
        assert story(ours(args, settings), requests, max_passes, foresees=foresees) == expected
