"""The `routing` section of a scenario: how requests find a worker (spec 01, 8; spec 06).

One module a mode, as in `dynamo_sim.routing`; all models can be imported from here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dynamo_sim.scenario.routing.kv_router import KvRouting
from dynamo_sim.scenario.routing.round_robin import RoundRobinRouting

Routing = Annotated[RoundRobinRouting | KvRouting, Field(discriminator="mode")]
"""Add a mode by adding its model here, and how it is built in `dynamo_sim.routing.build`."""

__all__ = ["KvRouting", "RoundRobinRouting", "Routing"]
