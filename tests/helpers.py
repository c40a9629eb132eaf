"""Small worlds for unit tests."""

from __future__ import annotations

import signal
from typing import Any

from dynamo_sim.engine.build import scheduler_factory
from dynamo_sim.engine.pass_log import NUMBERS, PassLog
from dynamo_sim.engine.pass_stats import PassStats
from dynamo_sim.engine.roles import Stage
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.workload.request import Request

DEMO = """\
name: demo
workload: {kind: synthetic, input_tokens: 100, output_tokens: 4, request_count: 5, arrival_interval_ms: 10}
report: {plots: false, requests_format: csv}
"""
"""A scenario that takes no time."""


def heed_signals() -> None:
    """Run in a child process before it starts: forget which signals it inherited as ignored.

    Those are SIGHUP under nohup, and SIGINT where a shell runs the tests in the background. The command line leaves
    ignored signals alone, so a test that sends one would wait without end.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def fleet(workers: int = 1, visible: bool = True, **engine: Any) -> Fleet:
    """A fleet with small engines: blocks of 4 tokens, 64 of them."""
    args = EngineArgs(**{"block_size": 4, "num_gpu_blocks": 64, **engine})
    return Fleet(Stage.AGGREGATED, scheduler_factory(args), workers, args.startup_time, visible)


def request(input_tokens: int = 8, output_tokens: int = 2, index: int = 0, **more: Any) -> Request:
    """A request that arrives at 0 and is unlike every other one."""
    return Request(index, 0.0, input_tokens, output_tokens, **more)


def pass_stats(**values: Any) -> PassStats:
    """Forward-pass metrics with those values."""
    stats = PassStats()
    for name, value in values.items():
        setattr(stats, name, value)
    return stats


def note_passes(
    log: PassLog, start_ms: float, ends_ms: list[float], opened: list[int] | None = None, **numbers: int
) -> None:
    """Record passes that share those numbers; all others are 0."""
    assert numbers.keys() <= NUMBERS.keys()
    of_all = tuple(numbers.get(name, 0) for name in NUMBERS)
    log.add_stretch(start_ms, ends_ms, of_all, opened or [0] * len(ends_ms))  # type: ignore[arg-type]


def collector() -> Collector:
    """A collector for visible fleets."""
    return Collector()
