"""Combinations of sections of a scenario that cannot run."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_sim.scenario.autoscaler.section import Autoscaler
from dynamo_sim.scenario.autoscaler.sla import SlaScaling
from dynamo_sim.scenario.base import Path, repeats
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.scenario.generated_workload import GeneratedWorkload
from dynamo_sim.scenario.sections import Fleet, Limits, ScalingStep, Sla
from dynamo_sim.scenario.workload import SyntheticWorkload, TraceWorkload, Workload
from dynamo_sim.traces.formats import FORMATS


def conflicts(
    workload: Workload,
    fleet: Fleet,
    scaling: tuple[ScalingStep, ...],
    autoscaler: Autoscaler | None,
    limits: Limits,
    sla: Sla,
) -> list[tuple[Path, str]]:
    """The combinations of sections that cannot run, as (place, what is wrong) (spec 08, 3 and 09, 6)."""
    found = [
        *_fleet_conflicts(fleet),
        *_scaling_conflicts(scaling, workload),
        *_limit_conflicts(limits, workload, is_scaled=bool(scaling)),
    ]
    if autoscaler is not None:
        found += _autoscaler_conflicts(autoscaler, fleet, sla, is_scaled=bool(scaling))
    return found


def _fleet_conflicts(fleet: Fleet) -> Iterator[tuple[Path, str]]:
    engine = fleet.engine
    if fleet.startup is not None and engine.startup_time is not None:
        yield ("fleet", "startup"), "cannot be given together with fleet.engine.startup_time"
    if engine.worker_type != "aggregated":
        yield (
            ("fleet", "engine", "worker_type"),
            f"found {engine.worker_type!r}; must be 'aggregated' in a fleet that does prefill and decode",
        )
    if fleet.offload:
        yield from _offload_conflicts(engine)
    if engine.dp_size != 1:
        yield ("fleet", "engine", "dp_size"), f"found {engine.dp_size}; must be 1 in a simulation"


def _offload_conflicts(engine: EngineArgs) -> Iterator[tuple[Path, str]]:
    """What the lower cache tiers need (`spec 11, 1`)."""
    if engine.engine_type == "sglang":
        yield (
            ("fleet", "offload"),
            "is for engine_type 'vllm' and 'trtllm'; in the reference, sglang workers have no lower cache tiers",
        )
        return
    if engine.num_g2_blocks is None:
        yield (
            ("fleet", "engine", "num_g2_blocks"),
            "missing; fleet.offload needs it: the blocks of the host tier",
        )
    if engine.kv_bytes_per_token is None:
        yield (
            ("fleet", "engine", "kv_bytes_per_token"),
            "missing; fleet.offload needs it: transfers take as long as their bytes",
        )


def _scaling_conflicts(scaling: tuple[ScalingStep, ...], workload: Workload) -> Iterator[tuple[Path, str]]:
    times = [step.at_ms for step in scaling]
    for position, first in repeats(times):
        yield (
            ("scaling", position, "at_ms"),
            f"found {times[position]:g}, the time of scaling.{first} too; must differ",
        )
    if scaling and isinstance(workload, TraceWorkload) and not workload.trace_format.with_script:
        possible = " or ".join(repr(each.name) for each in FORMATS if each.with_script)
        yield ("workload", "format"), f"found {workload.format!r}; must be {possible} in a run with scaling"


def _autoscaler_conflicts(
    autoscaler: Autoscaler, fleet: Fleet, sla: Sla, is_scaled: bool
) -> Iterator[tuple[Path, str]]:
    if is_scaled:
        yield (
            ("autoscaler",),
            "cannot be given together with scaling; policy kind 'schedule' has steps by time",
        )
    gpus = fleet.engine.gpus_per_worker
    least = max(1, autoscaler.min_workers) * gpus
    if autoscaler.max_gpus is not None and autoscaler.max_gpus < least:
        yield (
            ("autoscaler", "max_gpus"),
            f"found {autoscaler.max_gpus}; must be at least {least}, what the smallest fleet needs",
        )
    policy = autoscaler.policy
    if isinstance(policy, SlaScaling):
        for key in ("ttft_ms", "itl_ms"):
            if getattr(policy, key) is None and not getattr(sla, key):
                yield ("autoscaler", "policy", key), f"missing; give it here, or sla.{key} above 0"


def _limit_conflicts(limits: Limits, workload: Workload, is_scaled: bool) -> Iterator[tuple[Path, str]]:
    if isinstance(workload, GeneratedWorkload):
        for path, problem in workload.loop_conflicts(closed=limits.concurrency is not None):
            yield ("workload", *path), problem
    if limits.max_sim_time_ms is not None:
        if isinstance(workload, SyntheticWorkload):
            yield (
                ("limits", "max_sim_time_ms"),
                "is possible only for trace workloads; lower request_count instead",
            )
        elif is_scaled:
            yield ("limits", "max_sim_time_ms"), "is not possible in a run with scaling"
    if isinstance(workload, TraceWorkload):
        if workload.trace_format.is_workflow and limits.concurrency is not None:
            yield (
                ("limits", "concurrency"),
                f"is not possible for format {workload.format}, whose requests start when others end",
            )
        if workload.trace_format.needs_concurrency and limits.concurrency is None:
            yield (
                ("limits", "concurrency"),
                f"missing; format {workload.format} needs it, its sessions have no arrival times",
            )
