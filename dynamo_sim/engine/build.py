"""The scheduler of a worker from its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dynamo_sim.engine.roles import Stage
from dynamo_sim.engine.scheduler import Scheduler
from dynamo_sim.engine.vllm.scheduler import VllmScheduler
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.errors import ScenarioError
from dynamo_sim.kv.offload.settings import DEFAULT_BATCH_BLOCKS, DEFAULT_GBPS, OffloadSettings
from dynamo_sim.kv.offload.shared import SharedTiers
from dynamo_sim.kv.offload.worker_tiers import WorkerTiers
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
    shared_tiers: SharedTiers | None = None,
) -> Callable[[int], Scheduler]:
    """A function that makes the scheduler of the worker with a given id.

    Workers of one fleet share the timing (and its caches); each has a stream of its own for speculative decoding
    (`spec 04, 6.3`). In a ``capped`` run requests that never end are no error.

    Args:
        interner: names the prefixes of the run; a router and all workers must use the same one.
        shared_tiers: the cache tiers of the run that all its workers share, where `fleet.offload` asks for tiers.
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
        if shared_tiers is None:
            return engine(args, shared_timing, names, sampler, capped=capped, stage=stage)
        tiers: WorkerTiers[Sequence] = WorkerTiers(shared_tiers, offload_settings(args))
        return VllmScheduler(args, shared_timing, names, sampler, capped=capped, stage=stage, tiers=tiers)

    return make


def offload_settings(args: EngineArgs) -> OffloadSettings:
    """What the lower cache tiers of a worker are (`spec 11, 1`).

    Raises:
        ScenarioError: the arguments say too little about them.
    """
    if args.engine_type == "sglang":
        raise ScenarioError(
            "offload: is for engine_type 'vllm' and 'trtllm'; sglang workers have no lower tiers"
        )
    if args.num_g2_blocks is None or args.kv_bytes_per_token is None:
        raise ScenarioError("offload: needs num_g2_blocks and kv_bytes_per_token")
    gbps = dict(DEFAULT_GBPS)
    for name in gbps:
        given = getattr(args, f"bandwidth_{name}_gbps")
        if given is not None:
            gbps[name] = given
    return OffloadSettings(
        host_blocks=args.num_g2_blocks,
        block_bytes=args.block_size * args.kv_bytes_per_token,
        disk_blocks=args.num_g3_blocks,
        object_store=args.enable_g4_storage,
        batch_blocks=args.offload_batch_size or DEFAULT_BATCH_BLOCKS,
        gbps=gbps,
    )


def _engine_class(engine_type: str) -> Callable[..., Scheduler]:
    if engine_type == "sglang":
        from dynamo_sim.engine.sglang.scheduler import SglangScheduler

        return SglangScheduler
    return VllmScheduler
