"""What a person writes to describe a run: the specs, and the loader of YAML files."""

from dynamo_sim.scenario.autoscaler.section import Autoscaler
from dynamo_sim.scenario.engine_args import EngineArgs, SglangArgs, TrtllmArgs
from dynamo_sim.scenario.generated_workload import GeneratedWorkload
from dynamo_sim.scenario.loader import load_scenario
from dynamo_sim.scenario.routing import KvRouting, RoundRobinRouting
from dynamo_sim.scenario.specs import (
    Fleet,
    Limits,
    Report,
    ScalingStep,
    Scenario,
    Sla,
)
from dynamo_sim.scenario.workload import SyntheticWorkload, TraceWorkload

__all__ = [
    "Autoscaler",
    "EngineArgs",
    "Fleet",
    "GeneratedWorkload",
    "KvRouting",
    "Limits",
    "Report",
    "RoundRobinRouting",
    "ScalingStep",
    "Scenario",
    "SglangArgs",
    "Sla",
    "SyntheticWorkload",
    "TraceWorkload",
    "TrtllmArgs",
    "load_scenario",
]
