"""The router of a scenario."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynamo_sim.routing.context import RouterContext
from dynamo_sim.routing.kv.build import build_decode_router, build_kv_router, build_prefill_router
from dynamo_sim.routing.round_robin import RoundRobin
from dynamo_sim.routing.router import Router

if TYPE_CHECKING:
    from dynamo_sim.scenario.routing import Routing

__all__ = ["RouterContext", "build_router", "build_routers"]

_Maker = Callable[[Any, RouterContext], Router]

_MAKERS: dict[str, _Maker] = {
    "round_robin": lambda spec, context: RoundRobin(context.waits_for_workers),
    "kv_router": build_kv_router,
}
"""How routers are made, by the mode of their section."""

_MAKERS_OF_TWO: dict[str, tuple[_Maker, _Maker]] = {"kv_router": (build_prefill_router, build_decode_router)}
"""The same for the routers of a prefill and a decode fleet, where they are made in other ways."""


def build_router(spec: Routing, context: RouterContext) -> Router:
    """The router that a section asks for."""
    return _MAKERS[spec.mode](spec, context)


def build_routers(spec: Routing, prefill: RouterContext, decode: RouterContext) -> tuple[Router, Router]:
    """The routers of a prefill and a decode fleet that a section asks for (`spec 06, 9`; `spec 07, 10`)."""
    makers = _MAKERS_OF_TWO.get(spec.mode, (_MAKERS[spec.mode],) * 2)
    return makers[0](spec, prefill), makers[1](spec, decode)
