"""One SGLang-style worker without a fleet around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynamo_sim.engine.scheduler import Scheduler
from dynamo_sim.engine.sglang.scheduler import SglangScheduler
from dynamo_sim.engine.step import Step
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.timing.build import build_timing
from dynamo_sim.timing.speculative import BurstSampler
from dynamo_sim.workload.request import Request


def engine(kind: Any = SglangScheduler, **args: Any) -> Any:
    """A scheduler with those arguments; ``sglang`` holds the ones of this engine."""
    checked = EngineArgs(**{"engine_type": "sglang", **args})
    rates = checked.speculative_rates
    sampler = None if rates is None else BurstSampler(rates, checked.aic_mtp_seed, 0)
    return kind(checked, build_timing(checked), PrefixInterner(checked.block_size), sampler)


def run(
    scheduler: Scheduler, requests: Sequence[Request] = (), now_ms: float = 0.0, max_passes: int = 1_000_000
) -> list[Step]:
    """All steps from ``now_ms`` until every request has ended; requests in order of arrival."""
    steps: list[Step] = []
    coming = list(requests)
    while coming or scheduler.request_count:
        while coming and coming[0].arrival_ms <= now_ms:
            scheduler.receive(coming.pop(0))
        if not scheduler.request_count:
            now_ms = coming[0].arrival_ms
            continue
        step = scheduler.start(now_ms, max_passes)
        if coming:
            step.cut(coming[0].arrival_ms)
        scheduler.finish(step)
        steps.append(step)
        assert step.progress, "the worker cannot go on"
        now_ms = step.end_ms
    return steps


def ends(steps: Sequence[Step]) -> list[float]:
    """The end of every pass."""
    return [end for step in steps for end in step.ends_ms]


def request(
    index: int, at_ms: float, input_tokens: int, output_tokens: int, content: Any = None, **more: Any
) -> Request:
    """A request; ``content`` is a list of ``(token value, number)``, None for a prompt unlike all others."""
    prompt = None if content is None else tuple(content)
    return Request(index, at_ms, input_tokens, output_tokens, prompt, **more)
