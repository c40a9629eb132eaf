"""From the description of a workload to the source that offers it (`spec 08, 2`)."""

from __future__ import annotations

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.workload import Workload
from dynamo_sim.workload.loop import Loop
from dynamo_sim.workload.source import WorkloadSource
from dynamo_sim.workload.synthetic import synthetic_source


def build_source(
    spec: Workload,
    *,
    engine_block_size: int,
    concurrency: int | None = None,
    ticks: bool = False,
    single_worker: bool = False,
    honour_cap_with_ticks: bool = False,
    disaggregated: bool = False,
    seed: int = 0,
) -> WorkloadSource:
    """Build the source of requests that ``spec`` describes.

    Args:
        spec: the section `workload` of a scenario.
        engine_block_size: tokens a block of the engine (disaggregated: of the prefill engine).
        concurrency: cap of a closed loop, on requests or on sessions (`spec 08, 9`); None for an open loop.
        ticks: whether the run has an autoscaler. The reference then ignores the cap, which only switches the
            speed-up off (`spec 08, 9`). It makes no difference to generated loads.
        single_worker: whether the one-worker runtime executes the run: closed-loop arrivals are stamped when
            taken.
        honour_cap_with_ticks: make ``concurrency`` a cap on sessions in runs with ticks too.
        disaggregated: whether prefill and decode are separate fleets, for which some formats are refused.
        seed: the scenario's seed; only generated loads are random.

    Raises:
        ScenarioError: the parameters are out of range or do not go together.
        TraceError: the trace cannot be read, or one of its lines is wrong.
    """
    if concurrency is not None and concurrency < 1:
        raise ScenarioError(f"replay_concurrency must be at least 1, got {concurrency} (concurrency)")
    cap, ratio = concurrency, spec.arrival_speedup_ratio
    if ticks and concurrency is not None and spec.kind != "generated":
        ratio = 1.0
        cap = concurrency if honour_cap_with_ticks else None
    loop = Loop(cap, ratio, single_worker and cap is not None, ticks, disaggregated)
    if spec.kind == "synthetic":
        return synthetic_source(spec, engine_block_size, loop)
    # Imported where they are used, so that a run starts sooner.
    if spec.kind == "trace":
        from dynamo_sim.workload.trace_source import trace_source

        return trace_source(spec, loop)
    from dynamo_sim.workload.generated_source import generated_source

    return generated_source(spec, seed, loop)
