"""Combinations of sections of a scenario that cannot run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from dynamo_sim.scenario.autoscaler.section import Autoscaler, FleetAutoscaler
from dynamo_sim.scenario.autoscaler.sla import SlaScaling
from dynamo_sim.scenario.base import Path, repeats
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.scenario.explain import found as as_written
from dynamo_sim.scenario.generated_workload import GeneratedWorkload
from dynamo_sim.scenario.routing import Routing
from dynamo_sim.scenario.sections import Fleet, Limits, ScalingStep, Sla, Transfer
from dynamo_sim.scenario.workload import SyntheticWorkload, TraceWorkload, Workload
from dynamo_sim.traces.formats import FORMATS

MODES_OF_TWO_FLEETS = ("round_robin", "kv_router", "random")
"""Routing modes of a prefill and a decode fleet; the others look at workers, which hold more than they tell there."""

SHARED_TIER_KEYS = (
    "num_g3_blocks",
    "enable_g4_storage",
    "kv_bytes_per_token",
    "bandwidth_g2_to_g3_gbps",
    "bandwidth_g3_to_g2_gbps",
    "bandwidth_g2_to_g4_gbps",
    "bandwidth_g4_to_g2_gbps",
)
"""Keys in which all workers that share a disk or an object store agree (spec 11, 1)."""


class Sections(Protocol):
    """The sections of a scenario that can contradict each other."""

    workload: Workload
    scaling: tuple[ScalingStep, ...]
    autoscaler: Autoscaler | None
    limits: Limits
    sla: Sla

    @property
    def routing(self) -> Routing: ...

    @property
    def prefill(self) -> Fleet | None: ...

    @property
    def decode(self) -> Fleet | None: ...

    @property
    def transfer(self) -> Transfer | None: ...

    @property
    def model_fields_set(self) -> set[str]: ...

    @property
    def is_disaggregated(self) -> bool: ...

    @property
    def fleets(self) -> Mapping[str, Fleet]: ...

    @property
    def autoscalers(self) -> Mapping[str, FleetAutoscaler]: ...


def conflicts(scenario: Sections) -> list[tuple[Path, str]]:
    """The combinations of sections that cannot run, as (place, what is wrong) (spec 07, 2; 08, 3; 09, 6)."""
    is_scaled = bool(scenario.scaling)
    found = [
        *_which_fleets(scenario),
        *_scaling_conflicts(scenario.scaling, scenario.workload),
        *_limit_conflicts(scenario.limits, scenario.workload, is_scaled),
    ]
    for name, fleet in scenario.fleets.items():
        found += _fleet_conflicts(name, fleet)
    if scenario.is_disaggregated:
        found += _pair_conflicts(scenario)
    if scenario.autoscaler is not None:
        if is_scaled:
            found.append(
                (
                    ("autoscaler",),
                    "cannot be given together with scaling; policy kind 'schedule' has steps by time",
                )
            )
        for name, autoscaler in scenario.autoscalers.items():
            place = ("autoscaler", name) if scenario.autoscaler.is_per_fleet else ("autoscaler",)
            if name in scenario.fleets:
                found += _autoscaler_conflicts(place, autoscaler, scenario.fleets[name], scenario.sla)
    return found


def _which_fleets(scenario: Sections) -> Iterator[tuple[Path, str]]:
    """One fleet for everything, or one for prefill and one for decode, and sections that fit them."""
    given = [name for name in ("prefill", "decode") if getattr(scenario, name) is not None]
    if given and "fleet" in scenario.model_fields_set:
        yield ("fleet",), "cannot be given together with prefill and decode, which replace it"
    if len(given) == 1:
        missing = "decode" if given == ["prefill"] else "prefill"
        yield (missing,), f"missing; {given[0]} and {missing} workers need each other"
    autoscaler = scenario.autoscaler
    if given:
        for place, step in enumerate(scenario.scaling):
            if step.workers is not None:
                yield ("scaling", place, "workers"), "which fleet? give prefill, decode or both instead"
        if autoscaler is not None and not autoscaler.is_per_fleet:
            yield ("autoscaler",), "which fleet? put it below autoscaler.prefill or autoscaler.decode"
        return
    if scenario.transfer is not None:
        yield ("transfer",), "is possible only with prefill and decode fleets"
    for place, step in enumerate(scenario.scaling):
        for name in ("prefill", "decode"):
            if getattr(step, name) is not None:
                yield (
                    ("scaling", place, name),
                    "is possible only with prefill and decode fleets; give workers",
                )
    if autoscaler is not None and autoscaler.is_per_fleet:
        for name in autoscaler.of_fleets():
            yield ("autoscaler", name), "is possible only with prefill and decode fleets"


def _fleet_conflicts(name: str, fleet: Fleet) -> Iterator[tuple[Path, str]]:
    engine = fleet.engine
    if fleet.startup is not None and engine.startup_time is not None:
        yield (name, "startup"), f"cannot be given together with {name}.engine.startup_time"
    wanted = "aggregated" if name == "fleet" else name
    if engine.worker_type != wanted:
        about = "a fleet that does prefill and decode" if name == "fleet" else f"the {name} fleet"
        yield (
            (name, "engine", "worker_type"),
            f"found {engine.worker_type!r}; must be {wanted!r} in {about}",
        )
    if fleet.offload:
        yield from _offload_conflicts(name, engine)
    if engine.dp_size != 1:
        yield (name, "engine", "dp_size"), f"found {engine.dp_size}; must be 1 in a simulation"


def _pair_conflicts(scenario: Sections) -> Iterator[tuple[Path, str]]:
    """What a prefill and a decode fleet must have in common (spec 07, 2)."""
    if scenario.routing.mode not in MODES_OF_TWO_FLEETS:
        possible = ", ".join(map(repr, MODES_OF_TWO_FLEETS))
        yield (
            ("routing", "mode"),
            f"found {scenario.routing.mode!r}; must be one of {possible} where prefill and decode are separate fleets",
        )
    prefill, decode = (fleet.engine for fleet in scenario.fleets.values())
    for name, engine in (("prefill", prefill), ("decode", decode)):
        if engine.engine_type == "trtllm":
            yield (
                (name, "engine", "engine_type"),
                "found 'trtllm'; must be 'vllm' or 'sglang' where prefill and decode are separate fleets",
            )
    if decode.engine_type != prefill.engine_type:
        yield (
            ("decode", "engine", "engine_type"),
            f"found {decode.engine_type!r}; must be that of the prefill workers, {prefill.engine_type!r}",
        )
    elif decode.block_size != prefill.block_size:
        yield (
            ("decode", "engine", "block_size"),
            f"found {decode.block_size}; must be that of the prefill workers, {prefill.block_size}",
        )
    if prefill.kv_transfer_bandwidth == 0:
        yield (
            ("prefill", "engine", "kv_transfer_bandwidth"),
            "found 0; must be above 0, or left out for transfers that take no time",
        )
    if all(fleet.offload for fleet in scenario.fleets.values()):
        for key in SHARED_TIER_KEYS:
            found, wanted = getattr(decode, key), getattr(prefill, key)
            if found != wanted:
                yield (
                    ("decode", "engine", key),
                    f"found {as_written(found)}; must be that of the prefill workers, {as_written(wanted)}: "
                    "both share the lower cache tiers",
                )
    workload = scenario.workload
    if isinstance(workload, TraceWorkload) and not workload.trace_format.with_two_fleets:
        possible = " or ".join(repr(each.name) for each in FORMATS if each.with_two_fleets)
        yield (
            ("workload", "format"),
            f"found {workload.format!r}; must be {possible} where prefill and decode are separate fleets",
        )


def _offload_conflicts(name: str, engine: EngineArgs) -> Iterator[tuple[Path, str]]:
    """What the lower cache tiers need (`spec 11, 1`)."""
    if engine.engine_type == "sglang":
        yield (
            (name, "offload"),
            "is for engine_type 'vllm' and 'trtllm'; in the reference, sglang workers have no lower cache tiers",
        )
        return
    if engine.num_g2_blocks is None:
        yield (
            (name, "engine", "num_g2_blocks"),
            f"missing; {name}.offload needs it: the blocks of the host tier",
        )
    if engine.kv_bytes_per_token is None:
        yield (
            (name, "engine", "kv_bytes_per_token"),
            f"missing; {name}.offload needs it: transfers take as long as their bytes",
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
    place: Path, autoscaler: FleetAutoscaler, fleet: Fleet, sla: Sla
) -> Iterator[tuple[Path, str]]:
    gpus = fleet.engine.gpus_per_worker
    least = max(1, autoscaler.min_workers) * gpus
    if autoscaler.max_gpus is not None and autoscaler.max_gpus < least:
        yield (
            (*place, "max_gpus"),
            f"found {autoscaler.max_gpus}; must be at least {least}, what the smallest fleet needs",
        )
    policy = autoscaler.policy
    if isinstance(policy, SlaScaling):
        for key in ("ttft_ms", "itl_ms"):
            if getattr(policy, key) is None and not getattr(sla, key):
                yield (*place, "policy", key), f"missing; give it here, or sla.{key} above 0"


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
