"""The router of a scenario."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynamo_sim.routing.context import RouterContext
from dynamo_sim.routing.kv.build import build_kv_router
from dynamo_sim.routing.round_robin import RoundRobin
from dynamo_sim.routing.router import Router

if TYPE_CHECKING:
    from dynamo_sim.scenario.routing import Routing

__all__ = ["RouterContext", "build_router"]

_MAKERS: dict[str, Callable[[Any, RouterContext], Router]] = {
    "round_robin": lambda spec, context: RoundRobin(context.waits_for_workers),
    "kv_router": build_kv_router,
}
"""How routers are made, by the mode of their section."""


def build_router(spec: Routing, context: RouterContext) -> Router:
    """The router that a section asks for."""
    return _MAKERS[spec.mode](spec, context)
