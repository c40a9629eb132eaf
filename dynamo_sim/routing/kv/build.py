"""The cache-aware router from its section."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_sim.random_streams import stream
from dynamo_sim.routing.context import RouterContext
from dynamo_sim.routing.kv.queue import QueueClass, RouterQueue
from dynamo_sim.routing.kv.router import KvRouter

if TYPE_CHECKING:
    from dynamo_sim.scenario.routing import KvRouting

UNLIMITED_BUDGET_TOKENS = 10_000_000
"""What a worker without a token budget counts as (`spec 06, 1`)."""


def build_prefill_router(config: KvRouting, context: RouterContext) -> KvRouter:
    """The router of the prefill fleet of a disaggregated run, where no request stays to decode (`spec 06, 9`)."""
    return build_kv_router(config.model_copy(update={"router_track_active_blocks": False}), context)


def build_decode_router(config: KvRouting, context: RouterContext) -> KvRouter:
    """The router of the decode fleet: it balances prompt blocks, looks at no cache, and never queues."""
    seen = {
        "overlap_score_credit": 0.0,
        "router_assume_kv_reuse": False,
        "router_track_prefill_tokens": False,
    }
    return KvRouter(
        config.model_copy(update=seen),
        RouterQueue([QueueClass("all", "fcfs", budget_tokens=UNLIMITED_BUDGET_TOKENS)], None),
        context.interner,
        stream(context.seed, f"{context.stream}/kv_router"),
        never_queues=True,
        waits_for_workers=context.waits_for_workers,
        reads_kv_events=False,
    )


def build_kv_router(config: KvRouting, context: RouterContext) -> KvRouter:
    """The router of one pool of workers."""
    engine, profile = context.engine, config.profile
    budget_tokens = engine.max_num_batched_tokens or UNLIMITED_BUDGET_TOKENS
    if profile is not None:
        classes = [QueueClass.of(each, budget_tokens) for each in profile.policy_classes]
    else:
        policy = engine.router_queue_policy or config.router_queue_policy
        threshold = config.router_queue_threshold
        classes = [QueueClass("all", policy, budget_tokens=budget_tokens, busy_fraction=threshold)]
    return KvRouter(
        config,
        RouterQueue(classes, profile),
        context.interner,
        stream(context.seed, f"{context.stream}/kv_router"),
        never_queues=profile is None and config.router_queue_threshold is None,
        waits_for_workers=context.waits_for_workers,
    )
