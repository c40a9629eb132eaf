"""Builds a run from a scenario, runs it, and hands back its result."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dynamo_sim.clock import Clock
from dynamo_sim.engine.build import offload_settings, scheduler_factory
from dynamo_sim.engine.roles import Stage
from dynamo_sim.errors import ScenarioError
from dynamo_sim.fleet.collector import Collector
from dynamo_sim.fleet.fleet import Fleet
from dynamo_sim.fleet.startup import startup_durations
from dynamo_sim.kv.offload.shared import SharedTiers
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.records.records import RunRecords
from dynamo_sim.records.tier_use import TierUse
from dynamo_sim.report.result import RunResult
from dynamo_sim.report.summary import summarise
from dynamo_sim.report.unserved import unserved_warnings
from dynamo_sim.routing.build import RouterContext, build_router, build_routers
from dynamo_sim.routing.modes.custom import CustomRouter, checked_router
from dynamo_sim.routing.recorded import recorded
from dynamo_sim.routing.router import Router
from dynamo_sim.scenario.routing import ScrapingSpec
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.serving.aggregated import AggregatedServing
from dynamo_sim.serving.controller import Controller, ScriptedTargets
from dynamo_sim.serving.disaggregated import DisaggregatedServing
from dynamo_sim.serving.planner_bridge import Planner, PlannerController
from dynamo_sim.serving.pool import PoolOptions
from dynamo_sim.serving.side import SideParts
from dynamo_sim.serving.single import SingleWorkerServing
from dynamo_sim.serving.transfer import TransferTiming
from dynamo_sim.text import counted, printable
from dynamo_sim.timing.build import build_timing
from dynamo_sim.timing.pass_timing import PassTiming
from dynamo_sim.traces.lines import SkippedLine
from dynamo_sim.workload.build import build_source
from dynamo_sim.workload.source import WorkloadSource

Progress = Callable[[float, int], None]


def run(
    scenario: Scenario,
    progress: Progress | None = None,
    policy: Any = None,
    *,
    router: Any = None,
    on_workload: Callable[[int], None] | None = None,
) -> RunResult:
    """Simulate a scenario.

    Args:
        scenario: what to simulate.
        progress: called now and then with the virtual time in ms and the number of requests that have ended.
        policy: a scaling policy of your own instead of the scenario's: any object with a method
            ``decide(now_s, view, fleet)`` (`dynamo_sim.autoscaling.Policy`).
        router: a router of your own instead of the scenario's: any object with a method
            ``pick(request, workers, now_ms)`` that answers the id of a worker (`dynamo_sim.routing.modes.custom`).
        on_workload: called once before time begins, with the number of requests that will arrive.

    Returns:
        Its records, summary, tables and pictures.

    Raises:
        ScenarioError, TraceError: the input cannot be used.
        SimulationError: the run cannot go on; the message says what is stuck and what would help.
    """
    _expect_scenario(scenario, "run()")
    if router is not None and scenario.is_disaggregated:
        raise ScenarioError("router: is not possible with a prefill and a decode fleet, which have one each")
    return _run(
        scenario,
        _controller(scenario, policy),
        progress,
        honour_cap=True,
        router=router,
        on_workload=on_workload,
    )


def _expect_scenario(given: Any, who: str) -> None:
    """Refuse what is no scenario, such as the path of one."""
    if not isinstance(given, Scenario):
        kind = "None" if given is None else f"a {type(given).__name__}"
        made = "Scenario.from_dict(data)" if isinstance(given, dict) else "load_scenario(path)"
        raise ScenarioError(f"{who} needs a Scenario, got {kind}; {made} makes one")


def _controller(scenario: Scenario, policy: Any) -> Controller | None:
    """Who decides about the fleets of a scenario, if anybody."""
    if policy is not None:
        from dynamo_sim.autoscaling.build import build_custom

        if scenario.is_disaggregated:
            raise ScenarioError(
                "policy: one policy cannot scale both a prefill and a decode fleet; "
                "give autoscaler.prefill and autoscaler.decode a policy of kind 'custom'"
            )
        return build_custom(policy, scenario, scenario.autoscaler)
    if scenario.autoscaler is not None:
        from dynamo_sim.autoscaling.build import build_autoscaler, build_per_fleet

        if scenario.is_disaggregated:
            return build_per_fleet(scenario)
        return build_autoscaler(scenario.autoscaler, scenario)
    if scenario.is_disaggregated and scenario.scaling:
        return ScriptedTargets(
            [(step.at_ms, step.decode) for step in scenario.scaling],
            [(step.at_ms, step.prefill) for step in scenario.scaling],
        )
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
        yield f"{counted(len(skipped), 'bad line')} of the trace left out"
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
    router: Any = None,
    on_workload: Callable[[int], None] | None = None,
) -> RunResult:
    """Build everything, run it, sum it up."""
    limits, engines = scenario.limits, [fleet.engine for fleet in scenario.fleets.values()]
    single = router is None and _is_single(scenario, controller)
    source = build_source(
        scenario.workload,
        engine_block_size=engines[0].block_size,
        concurrency=limits.concurrency,
        ticks=controller is not None and controller.reads_as_reference,
        single_worker=single,
        honour_cap_with_ticks=honour_cap,
        disaggregated=scenario.is_disaggregated,
        seed=scenario.seed,
    )
    if on_workload is not None:
        on_workload(source.total)
    cap_ms = None if source.ignores_cap else limits.max_sim_time_ms
    run = _Run(scenario, controller, source, cap_ms, progress, router)
    serving = (
        run.disaggregated() if scenario.is_disaggregated else run.single() if single else run.aggregated()
    )
    with _garbage_collection_paused():
        serving.run()
    records = run.records
    if run.tiers is not None:
        records.tier_use = TierUse.of(run.tiers, records.end_ms)
    if controller is not None:
        records.decisions, records.readings = controller.decision_rows(), controller.readings()
    notes = [] if controller is None else [*controller.warnings, *controller.notes(records.end_ms)]
    if not isinstance(serving, SingleWorkerServing) and serving.killed_requests:
        notes.append(
            f"{counted(serving.killed_requests, 'request')} failed when their worker was killed before it had drained"
        )
    notes += unserved_warnings(records.requests, engines[0], cap_ms)
    timings = [text for timing in run.timings for text in timing.warnings()]
    found = [*notes, *_skipped_lines(source.skipped), *dict.fromkeys(timings)]
    records.warnings = [printable(warning) for warning in found]  # they may quote lines of a trace
    return RunResult(records, scenario, summarise(records, scenario.sla))


def _is_single(scenario: Scenario, controller: Controller | None) -> bool:
    """Whether the runtime for one worker that is asked no questions runs it: its numbers differ (`spec 01, 1`)."""
    return (
        not scenario.is_disaggregated
        and scenario.fleet.workers == 1
        and controller is None
        and scenario.routing.mode not in ("kv_router", "custom")
    )


class _Run:
    """Builds the parts of a run from its scenario.

    Attributes:
        records: what the run will leave behind.
        timings: the durations of passes, of each fleet.
        tiers: the lower cache tiers; None where no fleet has any.
    """

    def __init__(
        self,
        scenario: Scenario,
        controller: Controller | None,
        source: WorkloadSource,
        cap_ms: float | None,
        progress: Progress | None,
        router: Any = None,
    ) -> None:
        self.records = RunRecords()
        self.timings: list[PassTiming] = []
        self._scenario = scenario
        self._controller = controller
        self._source = source
        self._cap_ms = cap_ms
        self._progress = progress
        self._own_router = router
        self._max_passes = scenario.limits.max_stretch_passes
        first = next(iter(scenario.fleets.values()))
        self._interner = PrefixInterner(first.engine.block_size)
        offloading = [fleet.engine for fleet in scenario.fleets.values() if fleet.offload]
        # Once for the run (`spec 11, 1`).
        self.tiers = SharedTiers(offload_settings(offloading[0])) if offloading else None

    def single(self) -> SingleWorkerServing:
        """The one-worker runtime."""
        return SingleWorkerServing(
            Clock(),
            self._fleet("fleet"),
            self._source,
            self._collector("fleet"),
            closed_loop=self._scenario.limits.concurrency is not None,
            max_passes=self._max_passes,
            cap_ms=self._cap_ms,
            progress=self._progress,
        )

    def aggregated(self) -> AggregatedServing:
        """One fleet of any size."""
        serving = AggregatedServing(
            Clock(),
            self._fleet("fleet"),
            self._source,
            self._collector("fleet"),
            router=self._recorded(self._router(), "fleet"),
            controller=self._controller,
            options=self._options("fleet"),
            max_passes=self._max_passes,
            cap_ms=self._cap_ms,
            progress=self._progress,
        )
        if self._controller is not None:
            self._controller.attach({"fleet": serving.pool}, serving)
        return serving

    def disaggregated(self) -> DisaggregatedServing:
        """A prefill fleet and a decode fleet."""
        prefill, names = self._scenario.fleets["prefill"].engine, ("prefill", "decode")
        routers = build_routers(self._scenario.routing, *map(self._router_context, names))
        first, second = (
            SideParts(
                self._fleet(name), self._recorded(router, name), self._collector(name), self._options(name)
            )
            for name, router in zip(names, routers, strict=True)
        )
        serving = DisaggregatedServing(
            Clock(),
            first,
            second,
            self._source,
            interner=self._interner,
            timing=TransferTiming.of(prefill),
            source_first=prefill.engine_type == "vllm",
            links=None if self._scenario.transfer is None else self._scenario.transfer.links,
            controller=self._controller,
            max_passes=self._max_passes,
            cap_ms=self._cap_ms,
            progress=self._progress,
        )
        if self._controller is not None:
            pools = {"prefill": serving.prefill.pool, "decode": serving.decode.pool}
            self._controller.attach(pools, serving)
        return serving

    def _fleet(self, name: str) -> Fleet:
        spec = self._scenario.fleets[name]
        stage = _STAGES[name]
        timing = build_timing(spec.engine)
        self.timings.append(timing)
        factory = scheduler_factory(
            spec.engine,
            timing,
            capped=self._cap_ms is not None,
            interner=self._interner,
            stage=stage,
            shared_tiers=self.tiers if spec.offload else None,
        )
        startup_s = spec.engine.startup_time if spec.startup is None else spec.expected_startup_s
        return Fleet(stage, factory, spec.workers, startup_s)

    def _collector(self, name: str) -> Collector:
        gpus = self._scenario.fleets[name].engine.gpus_per_worker
        return Collector(self._scenario.report.passes, self.records, name, gpus)

    def _router(self) -> Router:
        """The router of the scenario, or the user's own object, which sees the workers as the scenario's would."""
        spec, own, context = self._scenario.routing, self._own_router, self._router_context("fleet")
        if own is None:
            return build_router(spec, context)
        interval_ms = spec.scrape_interval_ms if isinstance(spec, ScrapingSpec) else None
        return CustomRouter(checked_router(own), type(own).__name__, context, interval_ms)

    def _recorded(self, router: Router, name: str) -> Router:
        """A router of a fleet, whose decisions are recorded if the scenario wants them."""
        return recorded(router, name, self.records.routing) if self._scenario.report.routing else router

    def _router_context(self, name: str) -> RouterContext:
        controller = self._controller
        return RouterContext(
            self._scenario.fleets[name].engine,
            self._interner,
            self._scenario.seed,
            waits_for_workers=controller is not None and controller.waits_for_workers,
            stream="routing" if name == "fleet" else f"routing/{name}",
            folder=self._scenario.folder,
        )

    def _options(self, name: str) -> PoolOptions:
        """How the workers of a fleet start and leave."""
        spec = self._scenario.fleets[name]
        return PoolOptions(
            startup_ms=None
            if spec.startup is None
            else startup_durations(spec.startup, self._scenario.seed, name),
            drain_grace_ms=None if spec.drain_grace_s is None else spec.drain_grace_s * 1000.0,
        )


_STAGES = {"fleet": Stage.AGGREGATED, "prefill": Stage.PREFILL, "decode": Stage.DECODE}
"""What the workers of a fleet do, by its name."""
