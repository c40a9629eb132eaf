"""What sections of a scenario say about each other: impossible combinations, and settings that do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dynamo_sim.scenario.autoscaler.sla import SlaScaling
from dynamo_sim.scenario.base import Path, repeats
from dynamo_sim.scenario.generated_workload import GeneratedWorkload
from dynamo_sim.scenario.workload import SyntheticWorkload, TraceWorkload

if TYPE_CHECKING:
    from dynamo_sim.scenario.specs import Scenario


def conflicts(scenario: Scenario) -> list[tuple[Path, str]]:
    """The combinations that cannot run, as (place, what is wrong) (spec 08, 3 and 09, 6)."""
    return [
        *_fleet_conflicts(scenario),
        *_scaling_conflicts(scenario),
        *_autoscaler_conflicts(scenario),
        *_limit_conflicts(scenario),
    ]


def _fleet_conflicts(scenario: Scenario) -> Iterator[tuple[Path, str]]:
    engine = scenario.fleet.engine
    if scenario.fleet.startup is not None and engine.startup_time is not None:
        yield ("fleet", "startup"), "cannot be given together with fleet.engine.startup_time"
    if engine.worker_type != "aggregated":
        yield (
            ("fleet", "engine", "worker_type"),
            f"found {engine.worker_type!r}; must be 'aggregated' in a fleet that does prefill and decode",
        )
    if engine.dp_size != 1:
        yield ("fleet", "engine", "dp_size"), f"found {engine.dp_size}; must be 1 in a simulation"
    if scenario.routing.mode == "kv_router":
        yield (
            ("routing", "mode"),
            "found 'kv_router'; cache-aware routing is not available yet, use 'round_robin'",
        )


def _scaling_conflicts(scenario: Scenario) -> Iterator[tuple[Path, str]]:
    times = [step.at_ms for step in scenario.scaling]
    for position, first in repeats(times):
        yield (
            ("scaling", position, "at_ms"),
            f"found {times[position]:g}, the time of scaling.{first} too; must differ",
        )
    workload = scenario.workload
    if scenario.scaling and isinstance(workload, TraceWorkload) and workload.format != "mooncake":
        yield ("workload", "format"), f"found {workload.format!r}; must be 'mooncake' in a run with scaling"


def _autoscaler_conflicts(scenario: Scenario) -> Iterator[tuple[Path, str]]:
    autoscaler = scenario.autoscaler
    if autoscaler is None:
        return
    if scenario.scaling:
        yield (
            ("autoscaler",),
            "cannot be given together with scaling; policy kind 'schedule' has steps by time",
        )
    gpus = scenario.fleet.engine.gpus_per_worker
    least = max(1, autoscaler.min_workers) * gpus
    if autoscaler.max_gpus is not None and autoscaler.max_gpus < least:
        yield (
            ("autoscaler", "max_gpus"),
            f"found {autoscaler.max_gpus}; must be at least {least}, what the smallest fleet needs",
        )
    policy = autoscaler.policy
    if isinstance(policy, SlaScaling):
        for key in ("ttft_ms", "itl_ms"):
            if getattr(policy, key) is None and not getattr(scenario.sla, key):
                yield ("autoscaler", "policy", key), f"missing; give it here, or sla.{key} above 0"


def _limit_conflicts(scenario: Scenario) -> Iterator[tuple[Path, str]]:
    workload, limits = scenario.workload, scenario.limits
    if isinstance(workload, GeneratedWorkload):
        for path, problem in workload.loop_conflicts(closed=limits.concurrency is not None):
            yield ("workload", *path), problem
    if limits.max_sim_time_ms is not None:
        if isinstance(workload, SyntheticWorkload):
            yield (
                ("limits", "max_sim_time_ms"),
                "is possible only for trace workloads; lower request_count instead",
            )
        elif scenario.scaling:
            yield ("limits", "max_sim_time_ms"), "is not possible in a run with scaling"
    if isinstance(workload, TraceWorkload):
        if workload.is_workflow and limits.concurrency is not None:
            yield (
                ("limits", "concurrency"),
                f"is not possible for format {workload.format}, whose requests start when others end",
            )
        if workload.format == "applied_compute_agentic" and limits.concurrency is None:
            yield (
                ("limits", "concurrency"),
                "missing; format applied_compute_agentic needs it, its sessions have no arrival times",
            )


def notes(scenario: Scenario) -> list[str]:
    """Settings of this scenario that are accepted and change nothing, one line each (spec 08, 11; 02, 2)."""
    return list(_notes(scenario))


def _notes(scenario: Scenario) -> Iterator[str]:
    workload, limits, engine = scenario.workload, scenario.limits, scenario.fleet.engine
    if limits.concurrency is not None and workload.arrival_speedup_ratio != 1.0:
        yield "workload.arrival_speedup_ratio: not applied in a closed loop"
    if limits.concurrency is not None and isinstance(workload, GeneratedWorkload):
        for key in workload.unused_in_closed_loop():
            yield f"workload.{key}: not applied in a closed loop"
    if isinstance(workload, TraceWorkload):
        if workload.is_workflow and limits.max_sim_time_ms is not None:
            yield f"limits.max_sim_time_ms: not applied to format {workload.format}"
        if workload.format != "applied_compute_agentic" and workload.shared_prefix_ratio > 0:
            yield f"workload.shared_prefix_ratio: not applied to format {workload.format}"
    elif workload.shared_prefix_ratio > 0 and workload.num_prefix_groups == 0:
        yield "workload.shared_prefix_ratio: nothing is shared while num_prefix_groups is 0"
    if engine.num_g2_blocks is not None:
        yield "fleet.engine.num_g2_blocks: the lower cache tiers are not simulated"
    if engine.engine_type == "sglang" and engine.sglang.schedule_policy not in ("fifo", "fcfs", "lpm"):
        policy = engine.sglang.schedule_policy
        yield f"fleet.engine.sglang.schedule_policy: {policy!r} is not known and means 'fifo'"
    yield from _autoscaler_notes(scenario)
    if engine.startup_time is not None and not scenario.scaling and scenario.autoscaler is None:
        yield "fleet.engine.startup_time: the first workers are ready at time 0, and no worker is added later"


def _autoscaler_notes(scenario: Scenario) -> Iterator[str]:
    autoscaler = scenario.autoscaler
    if autoscaler is None:
        if "autoscaler" in scenario.model_fields_set:
            yield "autoscaler: is empty, so nobody scales the fleet; it needs a policy or a manifest"
        return
    if autoscaler.period_s is not None and autoscaler.kind in ("fixed", "schedule"):
        yield f"autoscaler.period_s: not used by the policy {autoscaler.kind!r}, which knows its times"
    if autoscaler.metrics.perfect:
        for key in (
            "scrape_interval_s",
            "scrape_aligned",
            "scrape_delay_s",
            "query_interval_s",
            "lookback_s",
        ):
            if key in autoscaler.metrics.model_fields_set:
                yield f"autoscaler.metrics.{key}: not used with perfect: true"
    workers, gpus = scenario.fleet.workers, scenario.fleet.engine.gpus_per_worker
    if autoscaler.max_workers is not None and workers > autoscaler.max_workers:
        yield f"fleet.workers: {workers} is above autoscaler.max_workers; the first decision lowers it"
    elif autoscaler.max_gpus is not None and workers * gpus > autoscaler.max_gpus:
        yield f"fleet.workers: {workers} need more than autoscaler.max_gpus; the first decision lowers it"
