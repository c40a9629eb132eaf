"""Which keys of `routing` change nothing in a scenario, and what its router cannot see in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dynamo_sim.scenario.generated_workload import GeneratedWorkload
from dynamo_sim.scenario.routing import (
    CustomRouting,
    EndpointPickerRouting,
    KvRouting,
    LeastLoadedRouting,
    PowerOfTwoChoicesRouting,
    PrefixHashRouting,
    RandomRouting,
    SessionAffinityRouting,
)
from dynamo_sim.scenario.workload import SyntheticWorkload, Workload

if TYPE_CHECKING:
    from dynamo_sim.scenario.specs import Scenario

NO_PREFIXES = "no two prompts of this load begin alike"
NO_SESSIONS = "no session of this load has a second turn"


def draws_at_random(scenario: Scenario) -> bool:
    """Whether the seed of the run decides about workers."""
    routing = scenario.routing
    if isinstance(routing, KvRouting):
        return routing.tie_break == "random" or routing.router_temperature > 0
    return isinstance(routing, RandomRouting | PowerOfTwoChoicesRouting | EndpointPickerRouting)


def idle_routing_keys(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Keys that change nothing, each with the reason."""
    routing = scenario.routing
    if isinstance(routing, KvRouting):
        engines = [fleet.engine for fleet in scenario.fleets.values()]
        yield from routing.without_effect(any(engine.router_queue_policy is not None for engine in engines))
    if isinstance(routing, LeastLoadedRouting | PowerOfTwoChoicesRouting) and routing.by == "in_flight":
        yield "metrics", "the router counts requests in flight itself"
    shares = _shares_prefixes(scenario.workload)
    if isinstance(routing, PrefixHashRouting) and not shares:
        for key in ("prefix_blocks", "points_per_worker", "load_factor"):
            yield key, NO_PREFIXES
    if isinstance(routing, SessionAffinityRouting):
        if not _has_turns(scenario.workload):
            yield "by", NO_SESSIONS
        elif routing.by == "first_turn":
            yield "points_per_worker", "only for by: hash"
    if isinstance(routing, EndpointPickerRouting):
        yield from _idle_scorer_keys(routing, shares)


def _idle_scorer_keys(routing: EndpointPickerRouting, shares_prefixes: bool) -> Iterator[tuple[str, str]]:
    weights = routing.weights
    if not shares_prefixes:
        yield "weights.prefix_cache", NO_PREFIXES
    if not shares_prefixes or not weights.prefix_cache:
        reason = "weights.prefix_cache is 0" if shares_prefixes else NO_PREFIXES
        for key in ("prefix_index", "max_prefix_blocks", "lru_capacity_blocks"):
            yield key, reason
    elif routing.prefix_index == "kv_events":
        yield "lru_capacity_blocks", "only for prefix_index: routed"
    if not weights.queue and not weights.kv_cache_utilization:
        yield "metrics", "the weights of all scraped metrics are 0"


def routing_remarks(scenario: Scenario) -> Iterator[str]:
    """What a reader could take wrongly."""
    routing = scenario.routing
    if isinstance(routing, CustomRouting):
        yield f"routing.class: runs code that is not part of this tool: {routing.class_}"
    if isinstance(routing, PrefixHashRouting) and not _shares_prefixes(scenario.workload):
        yield f"routing.mode: {NO_PREFIXES}, so 'prefix_hash' has nothing to follow"
    if isinstance(routing, SessionAffinityRouting) and not _has_turns(scenario.workload):
        yield f"routing.mode: {NO_SESSIONS}, so 'session_affinity' has nothing to follow"


def _shares_prefixes(workload: Workload) -> bool:
    """Whether prompts may begin alike; of a trace nobody knows before it is read."""
    if isinstance(workload, SyntheticWorkload):
        is_shared = workload.num_prefix_groups > 0 and workload.shared_prefix_ratio > 0
        return is_shared or workload.turns_per_session > 1
    return (
        not isinstance(workload, GeneratedWorkload) or workload.is_retimed or workload.shared_prefix_ratio > 0
    )


def _has_turns(workload: Workload) -> bool:
    """Whether sessions may have a second turn; of a trace nobody knows before it is read."""
    if isinstance(workload, SyntheticWorkload):
        return workload.turns_per_session > 1
    return not isinstance(workload, GeneratedWorkload) or workload.is_retimed
