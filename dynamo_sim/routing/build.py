"""The router of a scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.routing.round_robin import RoundRobin
from dynamo_sim.routing.router import Router

if TYPE_CHECKING:
    from dynamo_sim.scenario.engine_args import EngineArgs
    from dynamo_sim.scenario.routing import Routing


@dataclass(frozen=True)
class RouterContext:
    """What a router may need to know beside its own section.

    Attributes:
        engine: arguments of the workers it routes to.
        interner: names the blocks of prompts; the workers use the same one.
        seed: seed of the run.
        waits_for_workers: whether requests wait where no worker is active.
        stream: begins the names of the streams that it draws from.
    """

    engine: EngineArgs
    interner: PrefixInterner
    seed: int = 0
    waits_for_workers: bool = False
    stream: str = "routing"


_MAKERS: dict[str, Callable[[Any, RouterContext], Router]] = {
    "round_robin": lambda spec, context: RoundRobin(context.waits_for_workers),
}
"""How routers are made, by the mode of their section."""


def build_router(spec: Routing, context: RouterContext) -> Router:
    """The router that a section asks for."""
    return _MAKERS[spec.mode](spec, context)
