"""Small worlds for unit tests."""

from __future__ import annotations

from typing import Any

from dynamo_sim.engine.build import scheduler_factory
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.fleet import Fleet, Stage
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.workload.request import Request


def fleet(workers: int = 1, visible: bool = True, **engine: Any) -> Fleet:
    """A fleet with small engines: blocks of 4 tokens, 64 of them."""
    args = EngineArgs(**{"block_size": 4, "num_gpu_blocks": 64, **engine})
    return Fleet(Stage.AGGREGATED, scheduler_factory(args), workers, args.startup_time, visible)


def request(input_tokens: int = 8, output_tokens: int = 2, index: int = 0, **more: Any) -> Request:
    """A request that arrives at 0 and is unlike every other one."""
    return Request(index, 0.0, input_tokens, output_tokens, **more)


def watched() -> Collector:
    """A collector for visible fleets."""
    return Collector()
