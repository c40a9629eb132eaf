"""Which keys of a scenario affect its run, and which are accepted and change nothing in it.

`EFFECTS` has an entry for every key, or for a section all of whose keys are used wherever the section is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dynamo_sim.scenario.autoscaler.section import FleetAutoscaler
from dynamo_sim.scenario.base import Spec
from dynamo_sim.scenario.generated_workload import GeneratedWorkload
from dynamo_sim.scenario.routing import KvRouting
from dynamo_sim.scenario.routing_effects import draws_at_random, idle_routing_keys, routing_remarks
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.scenario.workload import TraceWorkload

Rule = Callable[[Scenario], str | None]
"""Says why a key changes nothing in this scenario; None where it has its effect."""

SGLANG_POLICIES = ("fifo", "fcfs", "lpm")


def _used(_: Scenario) -> str | None:
    return None


def _unused(reason: str) -> Rule:
    return lambda _: reason


def _if(holds: Callable[[Scenario], bool], reason: str) -> Rule:
    return lambda scenario: reason if holds(scenario) else None


def _is_closed(scenario: Scenario) -> bool:
    return scenario.limits.concurrency is not None


def _transfers_are_free(scenario: Scenario) -> bool:
    prefill = scenario.prefill
    return prefill is None or None in (
        prefill.engine.kv_bytes_per_token,
        prefill.engine.kv_transfer_bandwidth,
    )


def _is_fixed(scenario: Scenario) -> bool:
    return not scenario.scaling and scenario.autoscaler is None


def _only_engines(*engines: str) -> Rule:
    def rule(scenario: Scenario) -> str | None:
        engine = scenario.fleet.engine.engine_type
        return (
            None
            if engine in engines
            else f"not used by engine_type {engine!r}, only by {' and '.join(engines)}"
        )

    return rule


def _batched_tokens(scenario: Scenario) -> str | None:
    """Two policies and the cache-aware router reckon with it, whatever the engine does."""
    if isinstance(scenario.routing, KvRouting):
        return None
    if any(autoscaler.kind in ("sla", "dynamo_planner") for autoscaler in scenario.autoscalers.values()):
        return None
    return _only_engines("vllm", "trtllm")(scenario)


def _queue_policy(scenario: Scenario) -> str | None:
    if not isinstance(scenario.routing, KvRouting):
        return "only for routing mode 'kv_router'"
    return (
        "the classes of router_policy_config have orders of their own" if scenario.routing.profile else None
    )


def _schedule_policy(scenario: Scenario) -> str | None:
    policy = scenario.fleet.engine.sglang.schedule_policy
    if scenario.fleet.engine.engine_type == "sglang" and policy not in SGLANG_POLICIES:
        return f"{policy!r} is not known and means 'fifo'"
    return _only_engines("sglang")(scenario)


def _shared_prefix(scenario: Scenario) -> str | None:
    workload = scenario.workload
    if isinstance(workload, TraceWorkload):
        is_used = workload.trace_format.takes_shared_prefix
        return None if is_used else f"not applied to format {workload.format}"
    return "nothing is shared while num_prefix_groups is 0" if workload.num_prefix_groups == 0 else None


def _prefix_groups(scenario: Scenario) -> str | None:
    return _shared_prefix(scenario) if isinstance(scenario.workload, TraceWorkload) else None


def _groups_are_one(scenario: Scenario) -> bool:
    """Whether all of several prefix groups share the same blocks, as in the reference (`spec 08, 11`)."""
    workload = scenario.workload
    is_generated = isinstance(workload, GeneratedWorkload)
    return not is_generated and workload.num_prefix_groups > 1 and _prefix_groups(scenario) is None


def _seed(scenario: Scenario) -> str | None:
    """Generated loads, startups by a distribution, the times of scrapes and many routers are drawn."""
    is_scraped = any(not autoscaler.metrics.perfect for autoscaler in scenario.autoscalers.values())
    is_random = (
        isinstance(scenario.workload, GeneratedWorkload)
        or any(fleet.startup is not None for fleet in scenario.fleets.values())
        or is_scraped
        or draws_at_random(scenario)
    )
    return None if is_random else "nothing in this scenario is random"


def _max_sim_time(scenario: Scenario) -> str | None:
    workload = scenario.workload
    if isinstance(workload, TraceWorkload) and workload.trace_format.is_workflow:
        return f"not applied to format {workload.format}"
    return None


def _is_retimed(scenario: Scenario) -> bool:
    return isinstance(scenario.workload, GeneratedWorkload) and scenario.workload.is_retimed


_CLOSED_LOOP = _if(_is_closed, "not applied in a closed loop")
_CALLBACK = _unused(
    "only for a timing callback, which a simulation does not have; pass durations stay the same"
)
_TRANSFERS = _if(
    lambda scenario: scenario.fleet.engine.worker_type != "prefill",
    "only for the workers of a prefill fleet, which send KV to those of a decode fleet",
)


def _tiers(needs: str = "num_g2_blocks") -> Rule:
    """The rule of a key of the lower cache tiers; ``needs`` is the key without which it has nothing to say."""

    def rule(scenario: Scenario) -> str | None:
        if not scenario.fleet.offload:
            return "only with fleet.offload: true; without it, as in the reference, there are no lower cache tiers"
        return None if getattr(scenario.fleet.engine, needs) else f"needs {needs}"

    return rule


def _block_bytes(scenario: Scenario) -> str | None:
    return None if scenario.fleet.offload else _TRANSFERS(scenario)


_NOTHING = _unused("without effect in a simulation")
_DRAFTS = _if(
    lambda scenario: scenario.fleet.engine.aic_nextn is None, "needs aic_nextn, the number of draft tokens"
)

_ENGINE: dict[str, Rule] = {
    "engine_type": _used,
    "num_gpu_blocks": _used,
    "block_size": _used,
    "max_num_seqs": _used,
    "max_num_batched_tokens": _batched_tokens,
    "enable_prefix_caching": _only_engines("vllm", "trtllm"),
    "enable_chunked_prefill": _only_engines("vllm", "trtllm"),
    "preemption_mode": _only_engines("vllm"),
    "speedup_ratio": _used,
    "decode_speedup_ratio": _used,
    "dp_size": _used,
    "worker_type": _used,
    "is_prefill": _if(
        lambda scenario: "worker_type" in scenario.fleet.engine.model_fields_set, "worker_type is given"
    ),
    "is_decode": _if(
        lambda scenario: "worker_type" in scenario.fleet.engine.model_fields_set, "worker_type is given"
    ),
    "planner_profile_data": _used,
    "aic_backend": _used,
    "aic_system": _CALLBACK,
    "aic_backend_version": _CALLBACK,
    "aic_tp_size": _used,
    "aic_model_path": _CALLBACK,
    "aic_moe_tp_size": _CALLBACK,
    "aic_moe_ep_size": _CALLBACK,
    "aic_attention_dp_size": _used,
    "aic_gemm_dtype": _CALLBACK,
    "aic_moe_dtype": _CALLBACK,
    "aic_fmha_dtype": _CALLBACK,
    "aic_kv_cache_dtype": _CALLBACK,
    "aic_comm_dtype": _CALLBACK,
    "aic_nextn": _used,
    "aic_nextn_accept_rates": _DRAFTS,
    "aic_mtp_seed": _DRAFTS,
    "gpu_memory_utilization": _CALLBACK,
    "mem_fraction_static": _CALLBACK,
    "free_gpu_memory_fraction": _CALLBACK,
    "enable_local_indexer": _NOTHING,
    "bootstrap_port": _NOTHING,
    "handoff_session_timeout_ms": _NOTHING,
    "kv_bytes_per_token": _block_bytes,
    "kv_transfer_bandwidth": _TRANSFERS,
    "kv_transfer_timing_mode": _TRANSFERS,
    "num_g2_blocks": _tiers(),
    "num_g3_blocks": _tiers(),
    "enable_g4_storage": _tiers(),
    "offload_batch_size": _tiers(),
    "bandwidth_g1_to_g2_gbps": _tiers(),
    "bandwidth_g2_to_g1_gbps": _tiers(),
    "bandwidth_g2_to_g3_gbps": _tiers("num_g3_blocks"),
    "bandwidth_g3_to_g2_gbps": _tiers("num_g3_blocks"),
    "bandwidth_g2_to_g4_gbps": _tiers("enable_g4_storage"),
    "bandwidth_g4_to_g2_gbps": _tiers("enable_g4_storage"),
    "reasoning": _NOTHING,
    "response_replay_trace_path": _NOTHING,
    "zmq_kv_events_port": _NOTHING,
    "zmq_replay_port": _NOTHING,
    "router_queue_policy": _queue_policy,
    "sglang.schedule_policy": _schedule_policy,
    "sglang.page_size": _only_engines("sglang"),
    "sglang.max_prefill_tokens": _only_engines("sglang"),
    "sglang.chunked_prefill_size": _only_engines("sglang"),
    "sglang.clip_max_new_tokens": _only_engines("sglang"),
    "sglang.schedule_conservativeness": _only_engines("sglang"),
    "trtllm.capacity_scheduler_policy": _only_engines("trtllm"),
    "has_perf_model": _NOTHING,
    "startup_time": _if(_is_fixed, "the first workers are ready at time 0, and no worker is added later"),
}

EFFECTS: dict[str, Rule] = {
    "name": _used,
    "seed": _seed,
    "workload.kind": _used,
    "workload.input_tokens": _used,
    "workload.output_tokens": _used,
    "workload.request_count": _used,
    "workload.arrival_interval_ms": _CLOSED_LOOP,
    "workload.turns_per_session": _used,
    "workload.arrival_speedup_ratio": _CLOSED_LOOP,
    "workload.arrivals": _if(
        lambda scenario: _is_closed(scenario) and not _is_retimed(scenario), "not applied in a closed loop"
    ),
    "workload.arrivals.profile": _if(
        lambda scenario: _is_closed(scenario) and _is_retimed(scenario), "not applied in a closed loop"
    ),
    "workload.duration_s": _CLOSED_LOOP,
    "limits.max_sim_time_ms": _max_sim_time,
    "workload.shared_prefix_ratio": _shared_prefix,
    "workload.num_prefix_groups": _prefix_groups,
    "workload.inter_turn_delay_ms": _if(
        lambda scenario: getattr(scenario.workload, "turns_per_session", 1) == 1,
        "conversations have one turn; give turns_per_session",
    ),
    "workload.path": _used,
    "workload.records": _used,
    "workload.format": _used,
    "workload.trace_block_size": _used,
    "workload.columns": _used,
    "workload.time_unit": _used,
    "workload.skip_bad_lines": _used,
    "fleet.workers": _used,
    **{f"fleet.engine.{key}": rule for key, rule in _ENGINE.items()},
    "fleet.offload": _used,
    "fleet.startup": _if(_is_fixed, "the first workers are ready at time 0, and no worker is added later"),
    "fleet.drain_grace_s": _if(_is_fixed, "no worker is taken away: there is no scaling and no autoscaler"),
    "prefill": _used,  # its keys, and those of decode, are those of fleet
    "decode": _used,
    "transfer.links": _if(_transfers_are_free, "KV transfers take no time"),
    "routing": _used,
    "scaling": _used,
    "autoscaler": _used,
    "limits.concurrency": _used,
    "limits.max_stretch_passes": _used,
    "sla": _used,
    "report": _used,
}
"""Every key by its dotted name, or the section it belongs to, in the order in which notes are given."""

PERFECT_IGNORES = ("scrape_interval_s", "scrape_aligned", "scrape_delay_s", "query_interval_s", "lookback_s")
"""Keys of autoscaler.metrics that exact metrics do not use."""


def without_effect(scenario: Scenario) -> list[tuple[str, str]]:
    """The keys that were given and change nothing in this scenario, each with the reason (spec 08, 11; 02, 2).

    A key that was given its default value is not among them.
    """
    return [(key, reason) for key, reason in _idle_keys(scenario) if _is_given(scenario, key)]


def _idle_keys(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """All keys that change nothing in this scenario, given or not, each with the reason."""
    for key, rule in EFFECTS.items():
        if key.startswith("fleet."):
            for name in scenario.fleets:
                if (reason := rule(scenario.seen_from(name))) is not None:
                    yield name + key.removeprefix("fleet"), reason
        elif (reason := rule(scenario)) is not None:
            yield key, reason
    for key, reason in idle_routing_keys(scenario):
        yield f"routing.{key}", reason
    for place, autoscaler in _autoscalers(scenario):
        if autoscaler.kind in ("fixed", "schedule"):
            yield f"{place}.period_s", f"not used by the policy {autoscaler.kind!r}, which knows its times"
        if autoscaler.metrics.perfect:
            for key in PERFECT_IGNORES:
                yield f"{place}.metrics.{key}", "not used with perfect: true"


def _autoscalers(scenario: Scenario) -> Iterator[tuple[str, FleetAutoscaler]]:
    """The autoscalers with the dotted keys of their sections."""
    for name, autoscaler in scenario.autoscalers.items():
        yield ("autoscaler" if name == "fleet" else f"autoscaler.{name}"), autoscaler


def notes(scenario: Scenario) -> list[str]:
    """What a reader of this scenario could take wrongly, one line each: first the keys without effect."""
    return [*(f"{key}: {reason}" for key, reason in without_effect(scenario)), *_remarks(scenario)]


def effective(scenario: Scenario) -> dict[str, Any]:
    """The scenario as plain data without the keys that change nothing: equal for two runs with equal figures."""
    data = scenario.to_dict()
    for key, _ in _idle_keys(scenario):
        *sections, last = key.split(".")
        section: Any = data
        for name in sections:
            section = section.get(name) if isinstance(section, dict) else None
        if isinstance(section, dict):
            section.pop(last, None)
    if _groups_are_one(scenario):
        data["workload"]["num_prefix_groups"] = 1
    return data


def _is_given(scenario: Scenario, key: str) -> bool:
    """Whether a key was written down with another value than its default."""
    section: Any = scenario
    *sections, last = key.split(".")
    for name in sections:
        section = getattr(section, name, None)
    if not isinstance(section, Spec) or last not in section.model_fields_set:
        return False
    default = type(section).model_fields[last].get_default(call_default_factory=True)
    return bool(getattr(section, last) != default)


def _remarks(scenario: Scenario) -> Iterator[str]:
    if _groups_are_one(scenario):
        yield (
            "workload.num_prefix_groups: only whether it is above 0 matters; all groups share the same blocks "
            "(as in the reference)"
        )
    for name, fleet in scenario.fleets.items():
        for key in ("aic_tp_size", "aic_attention_dp_size"):
            if getattr(fleet.engine, key) not in (None, 1):
                yield (
                    f"{name}.engine.{key}: counts in the GPUs of a worker only; pass durations do not depend on it"
                )
        if fleet.offload and not fleet.engine.enable_prefix_caching:
            yield (
                f"{name}.offload: without enable_prefix_caching blocks are copied to the lower tiers, and no prompt "
                "finds them there"
            )
    yield from routing_remarks(scenario)
    if scenario.prefill is not None:
        engine = scenario.prefill.engine
        missing = [
            key for key in ("kv_bytes_per_token", "kv_transfer_bandwidth") if getattr(engine, key) is None
        ]
        if missing:
            yield f"prefill.engine.{missing[0]}: is not given, so KV transfers to the decode workers take no time"
    if scenario.autoscaler is None and "autoscaler" in scenario.model_fields_set:
        yield "autoscaler: is empty, so nobody scales the fleet; it needs a policy or a manifest"
    for place, autoscaler in _autoscalers(scenario):
        if autoscaler.kind == "custom":
            called = getattr(autoscaler.policy, "class_", "")
            yield f"{place}.policy.class: runs code that is not part of this tool: {called}"
    for name, autoscaler in scenario.autoscalers.items():
        fleet = scenario.fleets[name]
        workers, gpus = fleet.workers, fleet.engine.gpus_per_worker
        place = "autoscaler" if name == "fleet" else f"autoscaler.{name}"
        if autoscaler.max_workers is not None and workers > autoscaler.max_workers:
            yield f"{name}.workers: {workers} is above {place}.max_workers; the first decision lowers it"
        elif autoscaler.max_gpus is not None and workers * gpus > autoscaler.max_gpus:
            yield f"{name}.workers: {workers} need more than {place}.max_gpus; the first decision lowers it"
