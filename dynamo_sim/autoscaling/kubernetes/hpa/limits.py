"""How far one sync may go (`spec 10, 2.7`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dynamo_sim.autoscaling.kubernetes.hpa.spec import HpaState
from dynamo_sim.scenario.autoscaler.behavior import BehaviorSpec, DirectionSpec

WITHIN = "DesiredWithinRange"
TOO_FEW = "TooFewReplicas"
TOO_MANY = "TooManyReplicas"
UP_LIMIT = "ScaleUpLimit"
DOWN_LIMIT = "ScaleDownLimit"

Events = Sequence[tuple[int, float]]


def limit_default(current: int, desired: int, min_replicas: int, max_replicas: int) -> tuple[int, str]:
    """Without ``behavior``: (target, reason); at most twice the size, or 4, in one sync."""
    if desired < min_replicas:
        return min_replicas, TOO_FEW
    step = max(2 * current, 4)
    allowed = min(max_replicas, step)
    if desired > allowed:
        return allowed, UP_LIMIT if step < max_replicas else TOO_MANY
    return desired, WITHIN


def limit_with_behavior(
    current: int,
    desired: int,
    min_replicas: int,
    max_replicas: int,
    behavior: BehaviorSpec,
    state: HpaState,
    now_s: float,
) -> tuple[int, str]:
    """With ``behavior``: (target, reason)."""
    if desired > current:
        limit = max(up_limit(current, behavior.up, state.ups, state.downs, now_s), current)
        allowed = min(max_replicas, limit)
        if desired > allowed:
            return allowed, UP_LIMIT if limit < max_replicas else TOO_MANY
    elif desired < current:
        limit = min(down_limit(current, behavior.down, state.ups, state.downs, now_s), current)
        allowed = max(min_replicas, limit)
        if desired < allowed:
            return allowed, DOWN_LIMIT if limit > min_replicas else TOO_FEW
    return desired, WITHIN


def up_limit(current: int, direction: DirectionSpec, ups: Events, downs: Events, now_s: float) -> int:
    """The largest size the rules of scale-up allow now."""
    if direction.select == "Disabled":
        return current
    limits = []
    for rule in direction.rules or ():
        start = _period_start(current, ups, downs, now_s, rule.period_s)
        if rule.type == "Pods":
            limits.append(start + rule.value)
        else:
            limits.append(math.ceil(start * (1 + rule.value / 100)))
    return min(limits, default=current) if direction.select == "Min" else max(limits, default=current)


def down_limit(current: int, direction: DirectionSpec, ups: Events, downs: Events, now_s: float) -> int:
    """The smallest size the rules of scale-down allow now; may be below 0."""
    if direction.select == "Disabled":
        return current
    limits = []
    for rule in direction.rules or ():
        start = _period_start(current, ups, downs, now_s, rule.period_s)
        if rule.type == "Pods":
            limits.append(start - rule.value)
        else:
            limits.append(math.trunc(start * (1 - rule.value / 100)))
    return max(limits, default=current) if direction.select == "Min" else min(limits, default=current)


def _period_start(current: int, ups: Events, downs: Events, now_s: float, period_s: float) -> int:
    cutoff = now_s - period_s
    added = sum(size for size, at_s in ups if at_s > cutoff)
    removed = sum(size for size, at_s in downs if at_s > cutoff)
    return current - added + removed
