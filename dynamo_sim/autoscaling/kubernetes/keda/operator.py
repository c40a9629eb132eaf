"""KEDA's operator: from zero and back, at every poll (`spec 10, 3.3`)."""

from __future__ import annotations

from dataclasses import dataclass

from dynamo_sim.scenario.autoscaler.keda import ScaledObjectKeys


@dataclass(slots=True)
class OperatorState:
    """When a trigger was last active, in seconds; None for never."""

    last_active_s: float | None = None


def operator_target(
    keys: ScaledObjectKeys, state: OperatorState, current: int, active: bool, error: bool, now_s: float
) -> tuple[int | None, str]:
    """(target or None, reason): the first rule that fits.

    Args:
        state: is changed.
        active: whether any trigger is active.
        error: whether some trigger failed.
    """
    minimum, idle = keys.min_replicas, keys.idle_replicas
    if active:
        if (idle is not None and current < minimum) or current == 0:
            state.last_active_s = now_s
            return max(minimum, 1), "activated"
        if not error:
            state.last_active_s = now_s
        return None, "active"
    if error and keys.fallback is not None and keys.fallback.replicas != 0:
        return None, "trigger failed, fallback"
    if error and keys.fallback is None:
        return None, "trigger failed"
    if (idle is not None and current > idle) or (current > 0 and minimum == 0):
        if not _cooled_down(keys, state, now_s):
            return None, "cooling down"
        return (minimum if idle is None else idle), "cooled down"
    if idle is None and current < minimum:
        return minimum, "below min"
    return None, "inactive"


def _cooled_down(keys: ScaledObjectKeys, state: OperatorState, now_s: float) -> bool:
    if state.last_active_s is None:
        return keys.initial_cooldown_s < now_s
    return state.last_active_s + keys.cooldown_s < now_s
