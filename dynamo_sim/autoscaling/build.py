"""From the `autoscaler` section of a scenario to the controller that acts on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dynamo_sim.autoscaling.budget import clamp_to_budget
from dynamo_sim.autoscaling.controller import AutoscalerController
from dynamo_sim.autoscaling.decision import Policy
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.kubernetes.hpa import HpaMetric, HpaPolicy, HpaSettings, HpaSpec
from dynamo_sim.autoscaling.kubernetes.hpa.quantity import quantity_milli
from dynamo_sim.autoscaling.kubernetes.hpa.spec import (
    DEFAULT_DOWN,
    DEFAULT_UP,
    TOTAL_TYPES,
    HpaBehavior,
    HpaDirection,
    HpaRule,
)
from dynamo_sim.autoscaling.kubernetes.keda import KedaPolicy, ScaledObjectSpec
from dynamo_sim.autoscaling.kubernetes.keda.formula import Formula
from dynamo_sim.autoscaling.kubernetes.keda.formula_check import misread_names, shared_names
from dynamo_sim.autoscaling.kubernetes.keda.spec import (
    CronTrigger,
    Fallback,
    MetricTrigger,
    Modifiers,
    Trigger,
)
from dynamo_sim.autoscaling.kubernetes.kpa import KpaPolicy, KpaSettings
from dynamo_sim.autoscaling.kubernetes.manifests.load import load_manifest
from dynamo_sim.autoscaling.kubernetes.manifests.options import ManifestOptions
from dynamo_sim.autoscaling.loop import Loop, loops_of, reads_of
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.metrics.settings import MetricsSettings
from dynamo_sim.autoscaling.policies.custom import as_policy, load_policy
from dynamo_sim.autoscaling.policies.dynamo_planner import (
    DynamoPlanner,
    DynamoPlannerPolicy,
    engine_capabilities,
)
from dynamo_sim.autoscaling.policies.fixed import FixedPolicy
from dynamo_sim.autoscaling.policies.predictive import PredictivePolicy
from dynamo_sim.autoscaling.policies.queue_proportional import QueueProportionalPolicy
from dynamo_sim.autoscaling.policies.schedule import CronTarget, SchedulePolicy
from dynamo_sim.autoscaling.policies.sla import EngineLimits, SlaPolicy, SlaSettings
from dynamo_sim.autoscaling.policies.step_scaling import Step, StepAlarm, StepScalingPolicy
from dynamo_sim.autoscaling.policies.target_tracking import TargetTrackingPolicy
from dynamo_sim.autoscaling.reach import FleetFacts, unreachable_targets
from dynamo_sim.autoscaling.visibility import blind_at_zero, hidden_metrics
from dynamo_sim.cron import CronWindow, parse_start
from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario import cluster_policies as cluster
from dynamo_sim.scenario import policy_parts as parts
from dynamo_sim.scenario import scaling_policies as specs
from dynamo_sim.scenario.autoscaler import Autoscaler
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.timing.build import build_timing

DEFAULT_PERIOD_S = 15.0


def build_autoscaler(spec: Autoscaler, scenario: Scenario) -> AutoscalerController:
    """The controller that does what the section says.

    Args:
        spec: the section.
        scenario: the scenario it belongs to: its fleet, its folder, its seed.

    Raises:
        ScenarioError: a manifest, a policy of one's own or a combination of keys cannot be used; one line a problem.
    """
    built = _Builder(scenario, _bounds(spec))
    policy = built.policy(spec.chosen)
    return _controller(policy, built.name, spec, scenario, built.warnings)


def build_custom(policy: Any, scenario: Scenario, spec: Autoscaler | None = None) -> AutoscalerController:
    """The controller for a policy object of one's own.

    Args:
        policy: any object with a method ``decide(now_s, view, fleet)``, or with ``loops``.
        scenario: what is run.
        spec: bounds, times and metrics settings for it; its own policy is put aside. None for the defaults.

    Raises:
        ScenarioError: the object is no policy.
    """
    checked = as_policy(policy)
    return _controller(checked, type(policy).__name__, spec, scenario, [])


def _controller(
    policy: Any, name: str, spec: Autoscaler | None, scenario: Scenario, warnings: Sequence[str]
) -> AutoscalerController:
    engine = scenario.fleet.engine
    loops = _loops(policy, name, spec)
    found = [
        *warnings,
        *unreachable_targets(policy, _facts(policy, spec, scenario)),
        *hidden_metrics(_scraped(loops), _metrics(spec)),
        *blind_at_zero(policy, loops, 0 if spec is None else spec.min_workers),
    ]
    return AutoscalerController(
        loops,
        _metrics(spec),
        _bounds(spec),
        _budget(spec, engine.gpus_per_worker),
        scenario.seed,
        scenario.fleet.expected_startup_s,
        engine.gpus_per_worker,
        list(dict.fromkeys(found)),
    )


def _scraped(loops: Sequence[Loop]) -> list[MetricQuery]:
    """What is asked of scrapes; a policy that does not say what it reads is left out."""
    scraped = [loop.policy for loop in loops if not getattr(loop.policy, "direct", False)]
    return [query for policy in scraped for query in reads_of(policy) or ()]


def _loops(policy: Any, name: str, spec: Autoscaler | None) -> list[Loop]:
    """When the policy looks: as the section says, else as the policy says, else every 15 s."""
    period = None if spec is None else spec.period_s
    first = None if spec is None else spec.first_at_s
    try:
        loops = loops_of(policy, name, DEFAULT_PERIOD_S)
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"autoscaler.policy: {name}: {error}") from None
    if len(loops) == 1 and period is not None:
        loops = [replace(loops[0], period_s=period)]
    if first is not None:
        loops = [
            loop if getattr(loop.policy, "silent", False) else replace(loop, first_at_s=first)
            for loop in loops
        ]
    return loops


def _bounds(spec: Autoscaler | None) -> Bounds:
    return Bounds() if spec is None else Bounds(spec.min_workers, spec.max_workers)


def _metrics(spec: Autoscaler | None) -> MetricsSettings:
    return MetricsSettings() if spec is None else MetricsSettings(**dict(spec.metrics))


def _budget(spec: Autoscaler | None, gpus_per_worker: int) -> Callable[[int], int] | None:
    if spec is None or spec.max_gpus is None:
        return None
    return partial(clamp_to_budget, gpus_per_worker=gpus_per_worker, min_gpus=-1, max_gpus=spec.max_gpus)


def _facts(policy: Any, spec: Autoscaler | None, scenario: Scenario) -> FleetFacts:
    engine = scenario.fleet.engine
    ceilings: dict[str, float] = {"active_decode_blocks": float(engine.num_gpu_blocks)}
    if engine.max_num_seqs is not None:
        ceilings["running"] = float(engine.max_num_seqs)
    most = None if spec is None else spec.max_workers
    if spec is not None and spec.max_gpus is not None and engine.gpus_per_worker > 0:
        within = spec.max_gpus // engine.gpus_per_worker
        most = within if most is None else min(most, within)
    if not isinstance(policy, SlaPolicy):
        return FleetFacts(most, ceilings)  # nobody asks for durations, which may have to be read from a file
    timing = build_timing(engine)
    step_ms = timing.decode_ms(engine.block_size, 1, 1)
    longest_burst = 1 + (engine.aic_nextn or 0)
    return FleetFacts(most, ceilings, timing.prefill_ms(1, 1) + step_ms, step_ms / longest_burst)


class _Builder:
    """Makes policies from their specs.

    Attributes:
        name: how records and messages call the policy.
        warnings: what was to be said about it.
    """

    def __init__(self, scenario: Scenario, bounds: Bounds) -> None:
        self.name = ""
        self.warnings: list[str] = []
        self._scenario = scenario
        self._bounds = bounds

    def policy(self, spec: Any, place: str = "autoscaler.policy") -> Any:
        """The policy of a spec; ``place`` is for messages."""
        make = _MAKERS[spec.kind]
        self.name = spec.kind
        try:
            return make(self, spec)
        except (ValueError, ImportError) as error:
            raise ScenarioError(f"{place}: {error}") from error

    # ------------------------------------------------------------ simple ones

    def _fixed(self, spec: specs.FixedScaling) -> Policy:
        return FixedPolicy(spec.count)

    def _schedule(self, spec: specs.ScheduleScaling) -> Policy:
        start = parse_start(spec.start_of_run)
        cron = [
            CronTarget(CronWindow(entry.start, entry.end, entry.timezone, start), entry.target)
            for entry in spec.cron
        ]
        return SchedulePolicy([(step.t, step.target) for step in spec.at_ms], cron, spec.default)

    def _target_tracking(self, spec: specs.TargetTrackingScaling) -> Policy:
        return TargetTrackingPolicy(
            _query(spec, total=spec.target_kind == "total"),
            spec.target,
            spec.target_kind,
            spec.margin,
            spec.scale_out_cooldown_s,
            spec.scale_in_cooldown_s,
            self._bounds,
        )

    def _step_scaling(self, spec: specs.StepScaling) -> Policy:
        alarms = [
            StepAlarm(
                _query(alarm),
                alarm.threshold,
                alarm.direction,
                tuple(Step(step.lower, step.upper, step.adjustment) for step in alarm.steps),
                alarm.adjustment_type,
                alarm.min_adjustment_magnitude,
                alarm.evaluation_periods,
                alarm.datapoints,
            )
            for alarm in spec.alarms
        ]
        return StepScalingPolicy(alarms, spec.warmup_s, self._bounds)

    def _queue_proportional(self, spec: specs.QueueProportionalScaling) -> Policy:
        return QueueProportionalPolicy(
            spec.per_worker, spec.include_in_flight, spec.slack, spec.hold_s, self._bounds
        )

    def _predictive(self, spec: specs.PredictiveScaling) -> Policy:
        floor = self.policy(spec.floor_policy, "autoscaler.policy.floor_policy")
        self.name = spec.kind
        return PredictivePolicy(
            _query(spec, total=True),
            spec.per_worker,
            spec.bin_s,
            floor,
            spec.horizon_s,
            spec.method,
            spec.season_bins,
        )

    # ------------------------------------------------------------ those that know the engine

    def _sla(self, spec: specs.SlaScaling) -> Policy:
        section, engine = self._scenario.sla, self._scenario.fleet.engine
        settings = SlaSettings(
            ttft_ms=_target(spec.ttft_ms, section.ttft_ms),
            itl_ms=_target(spec.itl_ms, section.itl_ms),
            interval_s=spec.interval_s,
            throughput_interval_s=spec.throughput_interval_s,
            predictor=spec.predictor,
            sensitivity=spec.sensitivity,
            mode=spec.mode,
            min_workers=max(spec.min_workers, self._bounds.min_workers),
            stale_s=spec.stale_s,
            max_step=spec.max_step,
            strict=spec.strict,
        )
        limits = EngineLimits(
            engine.num_gpu_blocks * engine.block_size, engine.max_num_batched_tokens, engine.max_num_seqs
        )
        return SlaPolicy(settings, limits)

    def _dynamo_planner(self, spec: specs.DynamoPlannerScaling) -> Policy:
        engine = self._scenario.fleet.engine
        config = Path(spec.config) if isinstance(spec.config, str) else spec.config
        decode = engine_capabilities(
            engine.num_gpu_blocks,
            engine.block_size,
            engine.max_num_batched_tokens,
            engine.max_num_seqs,
            engine.aic_nextn,
        )
        return DynamoPlannerPolicy(DynamoPlanner(config, {"decode": decode}))

    def _custom(self, spec: specs.CustomScaling) -> Policy:
        policy = load_policy(spec.class_, spec.options, self._scenario.folder)
        self.name = spec.class_
        return policy

    # ------------------------------------------------------------ controllers of a cluster

    def _manifest(self, spec: cluster.FromManifest) -> Any:
        source, called = spec.manifest, None
        if isinstance(source, str) and not cluster.is_inline(source):
            source = Path(source)
            called = _as_written(source, self._scenario.folder)
        manifest = load_manifest(source, _options(spec), spec.name, called)
        if spec.kind not in ("manifest", manifest.kind):  # type: ignore[attr-defined]
            raise ValueError(f"the manifest is one of kind {manifest.kind!r}, not {spec.kind!r}")  # type: ignore[attr-defined]
        self.name = manifest.kind
        self.warnings += manifest.warnings
        return manifest.policy()

    def _hpa(self, spec: cluster.HpaScaling) -> Any:
        if spec.manifest is not None:
            return self._manifest(spec)
        metrics = tuple(
            HpaMetric(
                metric.source,
                metric.target_type,
                quantity_milli(metric.target),
                _query(metric, total=metric.source in TOTAL_TYPES),
                metric.name,
            )
            for metric in spec.metrics
        )
        assert spec.max_replicas is not None
        made = HpaSpec(spec.max_replicas, spec.min_replicas, metrics, _behavior(spec.behavior))
        return HpaPolicy(made, _hpa_settings(spec))

    def _keda(self, spec: cluster.KedaScaling) -> Any:
        if spec.manifest is not None:
            return self._manifest(spec)
        triggers = tuple(_trigger(trigger, spec) for trigger in spec.triggers)
        made = ScaledObjectSpec(
            triggers=triggers,
            min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas,
            idle_replicas=spec.idle_replicas,
            polling_interval_s=spec.polling_interval_s,
            cooldown_s=spec.cooldown_s,
            initial_cooldown_s=spec.initial_cooldown_s,
            fallback=None if spec.fallback is None else Fallback(**dict(spec.fallback)),
            behavior=_behavior(spec.behavior),
            modifiers=_modifiers(spec, triggers),
        )
        return KedaPolicy(made, _hpa_settings(spec))

    def _kpa(self, spec: cluster.KpaScaling) -> Any:
        if spec.manifest is not None:
            return self._manifest(spec)
        own = set(type(spec).model_fields) - set(cluster.FromManifest.model_fields) - {"kind"}
        return KpaPolicy(KpaSettings(**{key: getattr(spec, key) for key in own}))


def _as_written(path: Path, folder: Path | None) -> str:
    """A path as it stands in the scenario, or was given on the command line; those are absolute by now."""
    starts = [] if folder is None else [folder]
    with suppress(FileNotFoundError):  # a folder that is not there any more
        starts.append(Path.cwd())
    inside = [str(path.relative_to(start)) for start in starts if path.is_relative_to(start)]
    beside = [os.path.relpath(path, start) for start in starts[:1]]
    return inside[0] if inside else min(str(path), *beside, key=len)


_MAKERS: dict[str, Callable[[_Builder, Any], Any]] = {
    "fixed": _Builder._fixed,
    "schedule": _Builder._schedule,
    "target_tracking": _Builder._target_tracking,
    "step_scaling": _Builder._step_scaling,
    "queue_proportional": _Builder._queue_proportional,
    "predictive": _Builder._predictive,
    "hpa": _Builder._hpa,
    "keda": _Builder._keda,
    "kpa": _Builder._kpa,
    "sla": _Builder._sla,
    "dynamo_planner": _Builder._dynamo_planner,
    "custom": _Builder._custom,
    "manifest": _Builder._manifest,
}
"""How each kind of policy is made."""


def _query(spec: parts.Metric, total: bool = False) -> MetricQuery:
    """What a policy asks; where one number of the whole fleet is wanted and it is not said how, the sum."""
    query = MetricQuery(spec.metric, spec.over, spec.reduce, spec.window_s, spec.scale)
    if total and spec.reduce is None and query.reduce == "avg":
        query = replace(query, reduce="sum")
    return query


def _target(own: float | None, section: float | None) -> float:
    target = own if own is not None else section
    assert target is not None, "checked with the scenario"
    return target


def _hpa_settings(spec: cluster.ManifestOptions) -> HpaSettings:
    return HpaSettings(
        spec.sync_period_s,
        spec.downscale_stabilization_s,
        spec.tolerance,
        spec.cpu_initialization_period_s,
        spec.initial_readiness_delay_s,
        spec.scale_to_zero,
    )


def _options(spec: cluster.ManifestOptions) -> ManifestOptions:
    return ManifestOptions(
        _hpa_settings(spec),
        {name: _query(metric) for name, metric in spec.metric_map.items()},
        {name: _query(metric) for name, metric in spec.resource_map.items()},
        parse_start(spec.start_of_run),
    )


def _behavior(spec: cluster.BehaviorSpec | None) -> HpaBehavior | None:
    if spec is None:
        return None
    return HpaBehavior(_direction(spec.scale_up, DEFAULT_UP), _direction(spec.scale_down, DEFAULT_DOWN))


def _direction(spec: cluster.DirectionSpec, default: HpaDirection) -> HpaDirection:
    rules = default.rules
    if spec.rules is not None:
        rules = tuple(HpaRule(rule.type, rule.value, rule.period_s) for rule in spec.rules)
    window = default.window_s if spec.stabilization_window_s is None else spec.stabilization_window_s
    return HpaDirection(rules, spec.select, window, spec.tolerance)


def _trigger(
    spec: cluster.MetricTriggerSpec | cluster.CronTriggerSpec, options: cluster.KedaScaling
) -> Trigger:
    if isinstance(spec, cluster.CronTriggerSpec):
        window = CronWindow(spec.start, spec.end, spec.timezone, parse_start(options.start_of_run))
        return CronTrigger(window, spec.desired, spec.name, use_cached=spec.use_cached)
    return MetricTrigger(
        _query(spec, total=True),
        quantity_milli(spec.threshold),
        spec.activation,
        spec.metric_type,
        spec.name,
        spec.ignore_null,
        spec.use_cached,
    )


def _modifiers(spec: cluster.KedaScaling, triggers: Sequence[Trigger]) -> Modifiers | None:
    for name in shared_names(triggers):
        raise ValueError(f"triggers: several are named {name!r}")
    given = spec.modifiers
    if given is None:
        return None
    formula = Formula(given.formula)
    for problem in misread_names(formula, triggers):
        raise ValueError(f"modifiers.formula: {problem}")
    return Modifiers(formula, quantity_milli(given.target), given.activation, given.metric_type)
