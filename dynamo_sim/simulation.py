"""Builds a run from a scenario, runs it, and hands back its result."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dynamo_sim.clock import Clock
from dynamo_sim.engine.build import scheduler_factory, shared_tiers
from dynamo_sim.engine.roles import Stage
from dynamo_sim.errors import ScenarioError
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.fleet.startup import startup_durations
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.report.result import RunResult
from dynamo_sim.report.summary import summarise
from dynamo_sim.report.unserved import unserved_warnings
from dynamo_sim.routing.build import RouterContext, build_router
from dynamo_sim.scenario.specs import Fleet as FleetSpec
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.serving.aggregated import AggregatedServing
from dynamo_sim.serving.controller import Controller, ScriptedTargets
from dynamo_sim.serving.planner_bridge import Planner, PlannerController
from dynamo_sim.serving.pool import PoolOptions
from dynamo_sim.serving.single import SingleWorkerServing
from dynamo_sim.timing.build import build_timing
from dynamo_sim.traces.lines import SkippedLine
from dynamo_sim.workload.build import build_source

Progress = Callable[[float, int], None]


def run(
    scenario: Scenario,
    progress: Progress | None = None,
    policy: Any = None,
    *,
    on_workload: Callable[[int], None] | None = None,
) -> RunResult:
    """Simulate a scenario.

    Args:
        scenario: what to simulate.
        progress: called now and then with the virtual time in ms and the number of requests that have ended.
        policy: a scaling policy of your own instead of the scenario's: any object with a method
            ``decide(now_s, view, fleet)`` (`dynamo_sim.autoscaling.Policy`).
        on_workload: called once before time begins, with the number of requests that will arrive.

    Returns:
        Its records, summary, tables and pictures.

    Raises:
        ScenarioError, TraceError: the input cannot be used.
        SimulationError: the run cannot go on; the message says what is stuck and what would help.
    """
    _expect_scenario(scenario, "run()")
    return _run(scenario, _controller(scenario, policy), progress, honour_cap=True, on_workload=on_workload)


def _expect_scenario(given: Any, who: str) -> None:
    """Refuse what is no scenario, such as the path of one."""
    if not isinstance(given, Scenario):
        kind = "None" if given is None else f"a {type(given).__name__}"
        made = "Scenario.from_dict(data)" if isinstance(given, dict) else "load_scenario(path)"
        raise ScenarioError(f"{who} needs a Scenario, got {kind}; {made} makes one")


def _controller(scenario: Scenario, policy: Any) -> Controller | None:
    """Who decides about the fleet of a scenario, if anybody."""
    if policy is not None:
        from dynamo_sim.autoscaling.build import build_custom

        return build_custom(policy, scenario, scenario.autoscaler)
    if scenario.autoscaler is not None:
        from dynamo_sim.autoscaling.build import build_autoscaler

        return build_autoscaler(scenario.autoscaler, scenario)
    if scenario.scaling:
        return ScriptedTargets([(step.at_ms, step.workers) for step in scenario.scaling])
    return None


class PlannerBridge:
    """Lets any planner object drive the fleet of a scenario, like the planner bridge of the reference.

    The bridge keeps the reference's habits: traces are sessions read as ``mooncake``, and a concurrency limit does not
    limit anything but switches the arrival speed-up off (`spec 01, 9`; `spec 08, 9`).

    Args:
        scenario: what to simulate; without ``scaling`` and ``autoscaler`` of its own.
    """

    def __init__(self, scenario: Scenario) -> None:
        _expect_scenario(scenario, "PlannerBridge()")
        own = "scaling" if scenario.scaling else "autoscaler" if scenario.autoscaler is not None else None
        if own is not None:
            raise ScenarioError(f"a planner decides about the fleet: remove the scenario's own {own}")
        self.scenario = scenario

    def run(self, planner: Planner, progress: Progress | None = None) -> RunResult:
        """Simulate; ``planner`` is asked at the times it chooses (`Planner`)."""
        return _run(self.scenario, PlannerController(planner), progress, honour_cap=False)


def _skipped_lines(skipped: Sequence[SkippedLine]) -> Iterator[str]:
    """One sentence on the lines of the trace that were left out, and the first few of them."""
    if skipped:
        yield f"{len(skipped)} bad lines of the trace were left out"
    for line in skipped[:20]:
        place = f"{line.file}:{line.line}" if line.file else f"line {line.line}"
        yield f"left out {place}: {line.reason}"


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """A run makes many small objects and next to no cycles; looking for those would cost a tenth of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()  # all of them become old at once,
            gc.unfreeze()  # so that the next collection of young ones does not visit them
        if was_enabled:
            gc.enable()


def _run(
    scenario: Scenario,
    controller: Controller | None,
    progress: Progress | None,
    honour_cap: bool,
    on_workload: Callable[[int], None] | None = None,
) -> RunResult:
    """Build everything, run it, sum it up."""
    args, limits = scenario.fleet.engine, scenario.limits
    # One worker that is asked no questions has a runtime of its own, whose numbers differ (`spec 01, 1`).
    single = scenario.fleet.workers == 1 and controller is None and scenario.routing.mode != "kv_router"
    source = build_source(
        scenario.workload,
        engine_block_size=args.block_size,
        concurrency=limits.concurrency,
        ticks=controller is not None and controller.reads_as_reference,
        single_worker=single,
        honour_cap_with_ticks=honour_cap,
        seed=scenario.seed,
    )
    if on_workload is not None:
        on_workload(source.total)
    timing = build_timing(args)
    cap_ms = None if source.ignores_cap else limits.max_sim_time_ms
    interner = PrefixInterner(args.block_size)
    spec = scenario.fleet
    tiers = shared_tiers(args) if spec.offload else None
    factory = scheduler_factory(
        args, timing, capped=cap_ms is not None, interner=interner, shared_tiers=tiers
    )
    startup_s = args.startup_time if spec.startup is None else spec.expected_startup_s
    fleet = Fleet(Stage.AGGREGATED, factory, spec.workers, startup_s)
    collector = Collector(record_passes=scenario.report.passes, gpus_per_worker=args.gpus_per_worker)
    serving: SingleWorkerServing | AggregatedServing
    if single:
        serving = SingleWorkerServing(
            Clock(),
            fleet,
            source,
            collector,
            closed_loop=limits.concurrency is not None,
            max_passes=limits.max_stretch_passes,
            cap_ms=cap_ms,
            progress=progress,
        )
    else:
        serving = AggregatedServing(
            Clock(),
            fleet,
            source,
            collector,
            router=build_router(
                scenario.routing,
                RouterContext(
                    args,
                    interner,
                    scenario.seed,
                    waits_for_workers=controller is not None and controller.waits_for_workers,
                ),
            ),
            controller=controller,
            options=_pool_options(spec, scenario.seed),
            max_passes=limits.max_stretch_passes,
            cap_ms=cap_ms,
            progress=progress,
        )
        if controller is not None:
            controller.attach(serving.pool, serving)
    with _garbage_collection_paused():
        serving.run()
    records = collector.records
    if controller is not None:
        records.decisions, records.readings = controller.decision_rows(), controller.readings()
    notes = [] if controller is None else [*controller.warnings, *controller.notes(records.end_ms)]
    if isinstance(serving, AggregatedServing) and serving.killed_requests:
        notes.append(
            f"{serving.killed_requests} requests failed when their worker was killed before it had drained"
        )
    notes += unserved_warnings(records.requests, args, cap_ms)
    records.warnings = [*notes, *_skipped_lines(source.skipped), *timing.warnings()]
    return RunResult(records, scenario, summarise(records, scenario.sla))


def _pool_options(fleet: FleetSpec, seed: int) -> PoolOptions:
    """How the workers of a fleet start and leave."""
    return PoolOptions(
        startup_ms=None if fleet.startup is None else startup_durations(fleet.startup, seed),
        drain_grace_ms=None if fleet.drain_grace_s is None else fleet.drain_grace_s * 1000.0,
    )
