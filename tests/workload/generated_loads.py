"""Generated workloads for tests, and what a source hands out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dynamo_sim.scenario import Scenario
from dynamo_sim.workload.build import build_source
from dynamo_sim.workload.request import Request


def scenario(arrivals: Any, base_dir: Path | None = None, top: Any = None, **workload: Any) -> Scenario:
    """A scenario with a generated workload: 100 tokens in, 10 out, where the test says nothing else."""
    section: dict[str, Any] = {"kind": "generated", "input_tokens": 100, "output_tokens": 10}
    if arrivals is not None:
        section["arrivals"] = arrivals
        if arrivals["shape"] == "retimed":
            del section["input_tokens"], section["output_tokens"]
    section.update(workload)
    return Scenario.from_dict({"name": "demo", "workload": section, **(top or {})}, base_dir)


def requests(scenario: Scenario, **how: Any) -> list[Request]:
    """All requests of an open loop, in the order of their arrival."""
    source = build_source(scenario.workload, engine_block_size=16, seed=scenario.seed, **how)
    taken: list[Request] = []
    while (at_ms := source.next_ms()) is not None:
        due = source.take_due(at_ms, 0)
        taken.extend(due)
        for request in due:
            source.ended(request, at_ms, False)
    assert source.exhausted() and source.total == len(taken)
    return taken


def arrivals_s(arrivals: Any, seed: int = 0, **workload: Any) -> list[float]:
    """Arrival times of a shape in seconds."""
    loads = scenario(arrivals, top={"seed": seed}, **workload)
    return [request.arrival_ms / 1000.0 for request in requests(loads)]
