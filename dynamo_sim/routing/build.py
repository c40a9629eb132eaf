"""The router of a scenario."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynamo_sim.routing.context import RouterContext
from dynamo_sim.routing.kv.build import build_decode_router, build_kv_router, build_prefill_router
from dynamo_sim.routing.modes.custom import build_custom_router
from dynamo_sim.routing.modes.endpoint_picker import EndpointPicker
from dynamo_sim.routing.modes.least_loaded import LeastLoaded
from dynamo_sim.routing.modes.power_of_two_choices import PowerOfTwoChoices
from dynamo_sim.routing.modes.prefix_hash import PrefixHash
from dynamo_sim.routing.modes.random_choice import RandomChoice
from dynamo_sim.routing.modes.session_affinity import SessionAffinity
from dynamo_sim.routing.round_robin import RoundRobin
from dynamo_sim.routing.router import Router

if TYPE_CHECKING:
    from dynamo_sim.scenario.routing import Routing

__all__ = ["RouterContext", "build_router", "build_routers"]

_Maker = Callable[[Any, RouterContext], Router]

_MAKERS: dict[str, _Maker] = {
    "round_robin": lambda spec, context: RoundRobin(context.waits_for_workers),
    "kv_router": build_kv_router,
    "least_loaded": LeastLoaded,
    "power_of_two_choices": PowerOfTwoChoices,
    "random": lambda spec, context: RandomChoice(context),
    "prefix_hash": PrefixHash,
    "session_affinity": SessionAffinity,
    "endpoint_picker": EndpointPicker,
    "custom": build_custom_router,
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
