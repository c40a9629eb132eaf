"""The scheduler of a worker from its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dynamo_sim.engine.roles import Stage
from dynamo_sim.engine.scheduler import Scheduler
from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.timing.build import build_timing
from dynamo_sim.timing.pass_timing import PassTiming
from dynamo_sim.timing.speculative import BurstSampler

if TYPE_CHECKING:
    from dynamo_sim.scenario.engine_args import EngineArgs


def scheduler_factory(
    args: EngineArgs,
    timing: PassTiming | None = None,
    capped: bool = False,
    interner: PrefixInterner | None = None,
    stage: Stage = Stage.AGGREGATED,
) -> Callable[[int], Scheduler]:
    """A function that makes the scheduler of the worker with a given id.

    Workers of one fleet share the timing (and its caches); each has a stream of its own for speculative decoding
    (`spec 04, 6.3`). In a ``capped`` run requests that never end are no error.

    Args:
        interner: names the prefixes of the run; a router and all workers must use the same one.
        stage: what the workers do. Those of a prefill fleet make one token at a time, and draw nothing.
    """
    shared_timing = timing if timing is not None else build_timing(args)
    names = interner if interner is not None else PrefixInterner(args.block_size)
    engine = _engine_class(args.engine_type)

    def make(worker_id: int) -> Scheduler:
        rates = args.speculative_rates
        if rates is not None and stage is Stage.PREFILL:
            rates = ()
        sampler = None if rates is None else BurstSampler(rates, args.aic_mtp_seed, worker_id)
        return engine(args, shared_timing, names, sampler, capped=capped, stage=stage)

    return make


def _engine_class(engine_type: str) -> Callable[..., Scheduler]:
    if engine_type == "sglang":
        from dynamo_sim.engine.sglang.scheduler import SglangScheduler

        return SglangScheduler
    return VllmScheduler
