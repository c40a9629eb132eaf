"""Simulate a fleet of LLM serving workers, number for number with the mock engine of NVIDIA Dynamo.

    import dynamo_sim as ds

    scenario = ds.load_scenario("scenarios/quickstart.yaml")
    result = ds.run(scenario)
    result.summary.mean_ttft_ms
    result.requests, result.passes, result.fleet        # pandas DataFrames
    result.plot.latency()                               # matplotlib Axes

Names are imported when they are first used, so that the command line starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamo_sim.errors import DynamoSimError, ScenarioError, SimulationError, TraceError
    from dynamo_sim.report.result import RunResult
    from dynamo_sim.scenario import EngineArgs, Scenario, load_scenario
    from dynamo_sim.simulation import PlannerBridge, run

__version__ = "0.1.0"

_HOMES = {
    "DynamoSimError": "dynamo_sim.errors",
    "EngineArgs": "dynamo_sim.scenario",
    "PlannerBridge": "dynamo_sim.simulation",
    "RunResult": "dynamo_sim.report.result",
    "Scenario": "dynamo_sim.scenario",
    "ScenarioError": "dynamo_sim.errors",
    "SimulationError": "dynamo_sim.errors",
    "TraceError": "dynamo_sim.errors",
    "load_scenario": "dynamo_sim.scenario",
    "run": "dynamo_sim.simulation",
}

__all__ = [
    "DynamoSimError",
    "EngineArgs",
    "PlannerBridge",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "SimulationError",
    "TraceError",
    "load_scenario",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
