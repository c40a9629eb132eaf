"""The `routing` section of a scenario: how requests find a worker (spec 01, 8; spec 06).

One module a mode, or a few of a kind, as in `dynamo_sim.routing`; all models can be imported from here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dynamo_sim.scenario.routing.custom import CustomRouting
from dynamo_sim.scenario.routing.endpoint_picker import EndpointPickerRouting, ScorerWeights
from dynamo_sim.scenario.routing.hashing import PrefixHashRouting, SessionAffinityRouting
from dynamo_sim.scenario.routing.kv_router import KvRouting
from dynamo_sim.scenario.routing.least_loaded import LeastLoadedRouting
from dynamo_sim.scenario.routing.metrics import RoutingMetrics, ScrapingSpec
from dynamo_sim.scenario.routing.power_of_two_choices import PowerOfTwoChoicesRouting
from dynamo_sim.scenario.routing.random_choice import RandomRouting
from dynamo_sim.scenario.routing.round_robin import RoundRobinRouting

Routing = Annotated[
    RoundRobinRouting
    | KvRouting
    | LeastLoadedRouting
    | PowerOfTwoChoicesRouting
    | RandomRouting
    | PrefixHashRouting
    | SessionAffinityRouting
    | EndpointPickerRouting
    | CustomRouting,
    Field(discriminator="mode"),
]
"""Add a mode by adding its model here, and how it is built in `dynamo_sim.routing.build`."""

__all__ = [
    "CustomRouting",
    "EndpointPickerRouting",
    "KvRouting",
    "LeastLoadedRouting",
    "PowerOfTwoChoicesRouting",
    "PrefixHashRouting",
    "RandomRouting",
    "RoundRobinRouting",
    "Routing",
    "RoutingMetrics",
    "ScorerWeights",
    "ScrapingSpec",
    "SessionAffinityRouting",
]
