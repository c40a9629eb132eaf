"""The router of a scenario."""

from __future__ import annotations

from collections.abc import Callable

from dynamo_sim.routing.round_robin import RoundRobin
from dynamo_sim.routing.router import Router
from dynamo_sim.scenario.specs import Routing

_MAKERS: dict[str, Callable[[Routing, bool], Router]] = {
    "round_robin": lambda spec, waits_for_workers: RoundRobin(waits_for_workers),
}
"""How routers are made, by the mode of their section."""


def build_router(spec: Routing, waits_for_workers: bool) -> Router:
    """The router that a section asks for.

    Args:
        spec: the section; modes that cannot be built are refused by the checks of the scenario.
        waits_for_workers: whether requests wait where no worker is active.
    """
    return _MAKERS[spec.mode](spec, waits_for_workers)
