"""From the `autoscaler` section of a scenario to the controller that acts on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import yaml

from dynamo_sim.autoscaling.budget import clamp_to_budget
from dynamo_sim.autoscaling.controller import AutoscalerController
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.kubernetes.build import KINDS, build_kubernetes
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.per_fleet import PerFleetController
from dynamo_sim.autoscaling.policies.custom import as_policy, load_policy
from dynamo_sim.autoscaling.policies.dynamo_planner import (
    DynamoPlanner,
    DynamoPlannerPolicy,
    check_for_one_fleet,
    engine_capabilities,
    read_config,
)
from dynamo_sim.autoscaling.policies.fixed import FixedPolicy
from dynamo_sim.autoscaling.policies.predictive import PredictivePolicy
from dynamo_sim.autoscaling.policies.proportional import ProportionalPolicy
from dynamo_sim.autoscaling.policies.queue_proportional import QueueProportionalPolicy
from dynamo_sim.autoscaling.policies.schedule import SchedulePolicy
from dynamo_sim.autoscaling.policies.sla.capacity import EngineLimits
from dynamo_sim.autoscaling.policies.sla.policy import SlaPolicy
from dynamo_sim.autoscaling.policies.step_scaling import StepScalingPolicy
from dynamo_sim.autoscaling.policies.target_tracking import TargetTrackingPolicy
from dynamo_sim.autoscaling.policy import Loop, Policy, loops_of
from dynamo_sim.autoscaling.visibility import blind_at_zero, hidden_metrics
from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario import autoscaler as specs
from dynamo_sim.scenario.autoscaler.metrics import MetricsSection
from dynamo_sim.scenario.autoscaler.section import FleetAutoscaler
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.text import printable
from dynamo_sim.timing.build import build_timing

DEFAULT_PERIOD_S = 15.0


@dataclass(frozen=True)
class Built:
    """A policy that was made from its spec.

    Attributes:
        policy: the policy.
        name: how records and messages call it.
        warnings: what has to be said about it.
    """

    policy: Policy
    name: str
    warnings: list[str]


def build_autoscaler(spec: FleetAutoscaler, scenario: Scenario) -> AutoscalerController:
    """The controller that does what the section says.

    Args:
        spec: the section.
        scenario: the scenario it belongs to: its fleet, its folder, its seed.

    Raises:
        ScenarioError: a manifest, a custom policy or a combination of keys cannot be used; one line a problem.
    """
    bounds = _bounds(spec, scenario.fleet.engine)
    return _controller(build_policy(spec.chosen, scenario, bounds), spec, scenario)


def build_per_fleet(scenario: Scenario) -> PerFleetController:
    """The controller that does what the sections of a prefill and a decode fleet say.

    Raises:
        ScenarioError: as `build_autoscaler`, with the name of the fleet.
    """
    controllers = {}
    for name, spec in scenario.autoscalers.items():
        try:
            controllers[name] = build_autoscaler(spec, scenario.seen_from(name))
        except ScenarioError as error:
            raise ScenarioError(*(f"autoscaler.{name}: {problem}" for problem in error.problems)) from error
    return PerFleetController(controllers)


def build_custom(
    policy: Any, scenario: Scenario, spec: FleetAutoscaler | None = None
) -> AutoscalerController:
    """The controller for a custom policy object.

    Args:
        policy: any object with a method ``decide(now_s, view, fleet)``, or with ``loops``.
        scenario: what is run.
        spec: bounds, times and metrics settings for it; its own policy is put aside. None for the defaults.

    Raises:
        ScenarioError: the object is no policy.
    """
    return _controller(Built(as_policy(policy), type(policy).__name__, []), spec, scenario)


def build_policy(spec: Any, scenario: Scenario, bounds: Bounds, place: str = "autoscaler.policy") -> Built:
    """The policy of a spec.

    Args:
        spec: any of the policies of a scenario.
        scenario: it belongs to.
        bounds: smallest and largest fleet.
        place: for messages.

    Raises:
        ScenarioError: it cannot be made.
    """
    try:
        if spec.kind in KINDS:
            return Built(*build_kubernetes(spec, scenario.folder))
        if isinstance(spec, specs.CustomScaling):
            return Built(load_policy(spec.class_, spec.options, scenario.folder), spec.class_, [])
        if isinstance(spec, specs.PredictiveScaling):
            floor = build_policy(spec.floor_policy, scenario, bounds, f"{place}.floor_policy")
            return Built(PredictivePolicy(spec, floor.policy), spec.kind, floor.warnings)
        return Built(_MAKERS[spec.kind](spec, scenario, bounds), spec.kind, [])
    except (ValueError, ImportError) as error:
        raise ScenarioError(f"{place}: {error}") from error


def _sla(spec: specs.SlaScaling, scenario: Scenario, bounds: Bounds) -> Policy:
    section, engine = scenario.sla, scenario.fleet.engine
    limits = EngineLimits(
        engine.num_gpu_blocks * engine.block_size, engine.max_num_batched_tokens, engine.max_num_seqs
    )
    settled = {
        "ttft_ms": section.ttft_ms if spec.ttft_ms is None else spec.ttft_ms,
        "itl_ms": section.itl_ms if spec.itl_ms is None else spec.itl_ms,
        "min_workers": max(spec.min_workers, bounds.min_workers),
    }
    return SlaPolicy(spec.model_copy(update=settled), limits)


def _dynamo_planner(spec: specs.DynamoPlannerScaling, scenario: Scenario, bounds: Bounds) -> Policy:
    engine = scenario.fleet.engine
    try:
        config = read_config(spec.config)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ScenarioError(f"the planner's configuration cannot be read: {error}") from error
    check_for_one_fleet(config)
    decode = engine_capabilities(
        engine.num_gpu_blocks,
        engine.block_size,
        engine.max_num_batched_tokens,
        engine.max_num_seqs,
        engine.aic_nextn,
    )
    return DynamoPlannerPolicy(DynamoPlanner(config, {"decode": decode}))


_MAKERS: dict[str, Callable[[Any, Scenario, Bounds], Policy]] = {
    "fixed": lambda spec, scenario, bounds: FixedPolicy(spec),
    "schedule": lambda spec, scenario, bounds: SchedulePolicy(spec),
    "target_tracking": lambda spec, scenario, bounds: TargetTrackingPolicy(spec, bounds),
    "step_scaling": lambda spec, scenario, bounds: StepScalingPolicy(spec, bounds),
    "proportional": lambda spec, scenario, bounds: ProportionalPolicy(spec, bounds),
    "queue_proportional": lambda spec, scenario, bounds: QueueProportionalPolicy(spec, bounds),
    "sla": _sla,
    "dynamo_planner": _dynamo_planner,
}
"""How policies are made that need nothing but their spec and the scenario."""

BUILT_KINDS = frozenset((*_MAKERS, "custom", "predictive", *KINDS))
"""Every kind of policy that can be built."""


def _controller(built: Built, spec: FleetAutoscaler | None, scenario: Scenario) -> AutoscalerController:
    engine = scenario.fleet.engine
    metrics = MetricsSection() if spec is None else spec.metrics
    loops = _loops(built, spec)
    warnings = [
        *built.warnings,
        *built.policy.caveats(_facts(spec, engine)),
        *hidden_metrics(_scraped(loops), metrics),
        *blind_at_zero(built.policy, loops, 0 if spec is None else spec.min_workers),
    ]
    return AutoscalerController(
        loops,
        metrics,
        _bounds(spec),
        _budget(spec, engine.gpus_per_worker),
        scenario.seed,
        scenario.fleet.expected_startup_s,
        engine.gpus_per_worker,
        list(dict.fromkeys(map(printable, warnings))),
    )


def _scraped(loops: Sequence[Loop]) -> list[MetricQuery]:
    """What is asked of scrapes; a policy that does not say what it reads is left out."""
    return [query for loop in loops if not loop.policy.direct for query in loop.policy.queries or ()]


def _loops(built: Built, spec: FleetAutoscaler | None) -> list[Loop]:
    """When the policy is evaluated: as the section says, else as the policy says, else every 15 s."""
    period = None if spec is None else spec.period_s
    first = None if spec is None else spec.first_at_s
    try:
        loops = loops_of(built.policy, built.name, DEFAULT_PERIOD_S)
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"autoscaler.policy: {built.name}: {error}") from None
    if len(loops) == 1 and period is not None:
        loops = [replace(loops[0], period_s=period)]
    if first is not None:
        loops = [replace(loop, first_at_s=first) if loop.policy.is_recorded else loop for loop in loops]
    return loops


def _bounds(spec: FleetAutoscaler | None, engine: EngineArgs | None = None) -> Bounds:
    """Smallest and largest fleet; with an engine the largest that the GPU budget allows."""
    if spec is None:
        return Bounds()
    largest = spec.max_workers
    if engine is not None and spec.max_gpus is not None and engine.gpus_per_worker > 0:
        within = max(spec.max_gpus // engine.gpus_per_worker, spec.min_workers)
        largest = within if largest is None else min(largest, within)
    return Bounds(spec.min_workers, largest)


def _budget(spec: FleetAutoscaler | None, gpus_per_worker: int) -> Callable[[int], int] | None:
    if spec is None or spec.max_gpus is None:
        return None
    return partial(clamp_to_budget, gpus_per_worker=gpus_per_worker, min_gpus=-1, max_gpus=spec.max_gpus)


def _facts(spec: FleetAutoscaler | None, engine: EngineArgs) -> FleetFacts:
    ceilings: dict[str, float] = {"active_decode_blocks": float(engine.num_gpu_blocks)}
    if engine.max_num_seqs is not None:
        ceilings["running"] = float(engine.max_num_seqs)
    return FleetFacts(_bounds(spec, engine).max_workers, ceilings, partial(_fastest_ms, engine))


def _fastest_ms(engine: EngineArgs) -> tuple[float, float]:
    """TTFT and ITL in ms of a request of one token that has a worker to itself."""
    timing = build_timing(engine)
    step_ms = timing.decode_ms(engine.block_size, 1, 1)
    longest_burst = 1 + (engine.aic_nextn or 0)
    return timing.prefill_ms(1, 1) + step_ms, step_ms / longest_burst
