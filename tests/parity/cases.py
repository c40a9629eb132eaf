"""Cases in the shared format: reading them, and turning one into a scenario."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dynamo_sim.scenario.specs import Scenario

FOLDER = Path(__file__).parent / "cases"

Case = dict[str, Any]


class Unsupported(Exception):
    """The case needs something that is not built yet."""


def golden(topic: str) -> list[Case]:
    """The golden cases of a topic, each with what the reference answered under ``expected``."""
    with gzip.open(FOLDER / f"{topic}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def topics() -> Iterator[str]:
    """Names of the topics there are golden cases for."""
    for path in sorted(FOLDER.glob("*.jsonl.gz")):
        yield path.name.removesuffix(".jsonl.gz")


def has_ticks(case: Case) -> bool:
    """Whether a planner looks at the fleet."""
    return bool(case.get("scaling") or case.get("poll_ms"))


def is_workflow(case: Case) -> bool:
    """Whether requests wait for each other: agent traces."""
    workload = case["workload"]
    if workload.get("format") in ("agentic_mooncake", "agentic-mooncake"):
        return True
    records = [r.get("event", r) if isinstance(r, dict) else r for r in workload.get("records", ())]
    return workload.get("format") == "dynamo" and any(
        isinstance(r, dict) and r.get("event_type") == "request_end" and r.get("agent_context") is not None
        for r in records
    )


def to_scenario(case: Case, **limits: Any) -> Scenario:
    """The scenario of a case (what a planner does in it is left to the planner).

    Raises:
        Unsupported: what runs here and not in the reference.
        ScenarioError: the case is one that has to be refused.
    """
    ticks = has_ticks(case)
    workers = case.get("workers", 1)
    if "engine" in case and case.get("router_mode") == "kv_router" and not ticks and workers < 2:
        raise Unsupported("the reference has no kv_router for one worker; here it has nothing to choose")
    return Scenario.from_dict(
        {
            "name": "case",
            "workload": _workload(case, ticks),
            **_fleets(case, ticks),
            "routing": _routing(case),
            "limits": {
                "concurrency": case.get("concurrency"),
                "max_sim_time_ms": None if ticks else case.get("max_sim_time_ms"),
                **limits,
            },
            "sla": case.get("sla", {}),
            "report": {"passes": False},
        }
    )


def _fleets(case: Case, ticks: bool) -> dict[str, Any]:
    """One fleet, or two."""
    sections = {"engine": "fleet"} if "engine" in case else {"prefill": "prefill", "decode": "decode"}
    fleets = {}
    for key, section in sections.items():
        engine = dict(case[key])
        if ticks:
            engine.pop("dp_size", None)  # without effect there, whatever it is
        workers = case.get("workers" if key == "engine" else f"{key}_workers", 1)
        fleets[section] = {"workers": workers, "engine": engine, "offload": case.get("offload", False)}
    return fleets


def _routing(case: Case) -> dict[str, Any]:
    mode = case.get("router_mode", "round_robin")
    if mode != "kv_router":
        return {"mode": mode}
    given = dict(case.get("router") or {})
    if "router_policy" in given:
        given["router_policy_config"] = given.pop("router_policy")
    if has_ticks(case):
        given.pop("router_prefill_load_model", None)  # accepted there, and without effect
    return {"mode": mode, **given}


def _workload(case: Case, ticks: bool) -> dict[str, Any]:
    given = dict(case["workload"])
    given["arrival_speedup_ratio"] = case.get("speedup", 1.0)
    if case.get("concurrency") is not None:
        given["arrival_speedup_ratio"] = 1.0  # not used, and not checked
    if given["kind"] == "synthetic":
        extras = ("turns_per_session", "shared_prefix_ratio", "num_prefix_groups", "inter_turn_delay_ms")
        turns, *others = (given.get(key, 0) for key in extras)
        if not ticks and turns <= 1 and all(value <= 0 for value in others):
            for key in extras:
                given.pop(key, None)
        return given
    given["trace_block_size"] = given.pop("block_size", 512)
    if given.get("format", "mooncake") != "applied_compute_agentic":
        given.pop("shared_prefix_ratio", None)
        given.pop("num_prefix_groups", None)
    if ticks:
        given["format"] = "mooncake"
    return given
