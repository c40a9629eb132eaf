"""One sync of the controller, from recommendations to a target (`spec 10, 2.5`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dynamo_sim.autoscaling.kubernetes.hpa.limits import limit_default, limit_with_behavior
from dynamo_sim.autoscaling.kubernetes.hpa.spec import HpaState
from dynamo_sim.autoscaling.kubernetes.hpa.stabilise import (
    note_change,
    stabilise_default,
    stabilise_with_behavior,
)
from dynamo_sim.scenario.autoscaler.behavior import BehaviorSpec
from dynamo_sim.scenario.autoscaler.manifest import HpaFlags

DISABLED = "ScalingDisabled"
BELOW_MIN = "below min"
ABOVE_MAX = "above max"
NO_METRIC = "no metric"


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The outcome of a sync: target and reason, and the numbers on the way where there were any."""

    target: int
    reason: str
    recommendation: int | None = None
    stabilised: int | None = None


def sync(
    state: HpaState,
    current: int,
    min_replicas: int,
    max_replicas: int,
    behavior: BehaviorSpec | None,
    recommendations: Callable[[], Sequence[int | None]],
    now_s: float,
    flags: HpaFlags,
) -> SyncResult:
    """Decide, and remember what the next syncs need.

    Args:
        state: is changed.
        recommendations: reads the metrics; None for one that fails. Not called when the size is out of bounds.
    """
    if current == 0 and min_replicas != 0:
        return SyncResult(0, DISABLED)
    if current > max_replicas:
        result = SyncResult(max_replicas, ABOVE_MAX)
    elif current < min_replicas:
        result = SyncResult(min_replicas, BELOW_MIN)
    else:
        result = _from_metrics(
            state, current, min_replicas, max_replicas, behavior, recommendations(), now_s, flags
        )
    if behavior is not None and result.target > current:
        note_change(state.ups, result.target - current, now_s, behavior.up.rules)
    elif behavior is not None and result.target < current:
        note_change(state.downs, current - result.target, now_s, behavior.down.rules)
    return result


def begin_history(state: HpaState, current: int, now_s: float) -> None:
    """The first sync ever takes the present size for a recommendation."""
    if not state.history:
        state.history.append((current, now_s))


def _from_metrics(
    state: HpaState,
    current: int,
    min_replicas: int,
    max_replicas: int,
    behavior: BehaviorSpec | None,
    recommendations: Sequence[int | None],
    now_s: float,
    flags: HpaFlags,
) -> SyncResult:
    valid = [recommendation for recommendation in recommendations if recommendation is not None]
    recommendation = max(valid, default=None)
    if recommendation is None or (len(valid) < len(recommendations) and recommendation < current):
        return SyncResult(current, NO_METRIC, recommendation)
    if behavior is None:
        stabilised = stabilise_default(state, recommendation, now_s, flags.downscale_stabilization_s)
        target, reason = limit_default(current, stabilised, min_replicas, max_replicas)
    else:
        up = behavior.up.stabilization_window_s or 0.0
        down = behavior.down.stabilization_window_s
        down = flags.downscale_stabilization_s if down is None else down
        stabilised = stabilise_with_behavior(state, current, recommendation, now_s, up, down)
        target, reason = limit_with_behavior(
            current, stabilised, min_replicas, max_replicas, behavior, state, now_s
        )
    return SyncResult(target, reason, recommendation, stabilised)
