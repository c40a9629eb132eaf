"""From desired replicas to a target: initial scale, bounds, and the way to zero (`spec 10, 4.4`).

The rules are those of `handleScaleToZero` and `computeActiveCondition` in knative/serving, as of August 2026.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dynamo_sim.scenario.autoscaler.kpa import KpaScaling

UNKNOWN = -1
"""Desired replicas that nobody knows: nothing is changed."""

PROXIED_RECHECK_S = 3.0
"""A revision that the activator already serves when it becomes inactive is checked again after this time."""

ACTIVATION_TIMEOUT_S = 630.0
"""Progress deadline of a Deployment and a buffer: a revision that is not ready by then goes to zero."""


class Activity(Enum):
    """The condition ``Active`` of a revision: Unknown, True, False."""

    ACTIVATING = "activating"
    ACTIVE = "active"
    INACTIVE = "inactive"


@dataclass(slots=True)
class Scaler:
    """What a revision remembers of its own activity (times in seconds).

    Attributes:
        activity, since_s: its condition, and since when.
        reached_initial: whether ``initial-scale`` workers have ever been ready.
        proxied_since_s: since when the activator is in the path of the requests; None while it is not.
        next_check_s: when to check again though nothing has changed; None for never.
    """

    spec: KpaScaling
    activity: Activity = Activity.ACTIVATING
    since_s: float = 0.0
    reached_initial: bool = False
    proxied_since_s: float | None = None
    next_check_s: float | None = None
    _decided: int = UNKNOWN

    @property
    def inactive(self) -> bool:
        """Whether the revision is inactive; a worker that is still there goes on serving."""
        return self.activity is Activity.INACTIVE

    def target(
        self,
        desired: int,
        now_s: float,
        ready: int,
        current: int,
        excess_burst_capacity: int = 0,
        ready_since_s: float | None = None,
    ) -> tuple[int | None, str]:
        """(target or None, reason).

        Args:
            desired: of the decider; -1 where it knows nothing.
            ready: active workers.
            current: effective workers.
            excess_burst_capacity: of the decider; below 0 the activator is in the path.
            ready_since_s: when so many workers had become ready as the revision needs to be active; None for now.
        """
        self.next_check_s = None
        self._update(self._decided, ready, now_s if ready_since_s is None else ready_since_s)
        bounded, reason = self._bounded(desired)
        applied = True
        if bounded == 0:
            bounded, applied, reason = self._toward_zero(now_s, current)
        if bounded == 0 or excess_burst_capacity < 0 or (bounded == UNKNOWN and self.inactive):
            if self.proxied_since_s is None:
                self.proxied_since_s = now_s
        else:
            self.proxied_since_s = None
        self._update(bounded, ready, now_s)
        if self.inactive and not applied and self.next_check_s is None:
            self.next_check_s = self._zero_at_s()
        return (bounded if applied and bounded != UNKNOWN else None), reason

    @property
    def threshold(self) -> int:
        """Workers that must be ready for the revision to be active."""
        if self.reached_initial:
            return max(1, self.spec.min_scale)
        return max(self.spec.min_scale, self.spec.initial_scale)

    def _update(self, desired: int, ready: int, now_s: float) -> None:
        """The condition that follows from what is desired and what is ready."""
        self._decided = desired
        needed = self.threshold
        if ready >= needed:
            self.reached_initial = True
        if desired == 0 or needed == 0:
            self._become(Activity.INACTIVE, now_s)
        elif desired > 0 or not self.inactive:
            self._become(Activity.ACTIVE if ready >= needed else Activity.ACTIVATING, now_s)

    def _become(self, activity: Activity, now_s: float) -> None:
        if activity is not self.activity:
            self.activity, self.since_s = activity, max(now_s, self.since_s)

    def _bounded(self, desired: int) -> tuple[int, str]:
        spec = self.spec
        if desired == UNKNOWN and self.activity is not Activity.ACTIVATING:
            return UNKNOWN, "no data"
        lowest, reason = spec.min_scale, "min scale"
        if spec.initial_scale > max(1, lowest) and not self.reached_initial:
            lowest, reason = spec.initial_scale, "initial scale"
        if desired < lowest:
            return lowest, reason
        if 0 < spec.max_scale < desired:
            return spec.max_scale, "max scale"
        return max(0, desired), "stable"

    def _toward_zero(self, now_s: float, current: int) -> tuple[int, bool, str]:
        """(desired replicas, whether they are applied, reason) where none are desired."""
        spec, elapsed_s = self.spec, now_s - self.since_s
        if not spec.enable_scale_to_zero:
            return 1, True, "scale to zero is off"
        if self.activity is Activity.ACTIVATING:
            self.next_check_s = self.since_s + ACTIVATION_TIMEOUT_S
            if elapsed_s > ACTIVATION_TIMEOUT_S:
                return 0, True, "activation timed out"
            return UNKNOWN, False, "activating"
        if self.activity is Activity.ACTIVE:
            if elapsed_s < spec.window_s:
                self.next_check_s = self.since_s + spec.window_s
                return 1, True, "active for less than the window"
            if self.proxied_since_s is not None:
                self.next_check_s = now_s + PROXIED_RECHECK_S
            return 0, False, "inactive"
        if current == 0:
            return 0, True, "at zero"
        if now_s >= self._zero_at_s():
            return 0, True, "scale to zero"
        return 0, False, "inactive, grace period"

    def _zero_at_s(self) -> float:
        """When an inactive revision may go to zero.

        After the retention period, and once the activator has been in the path for the grace period; when it has been
        there for long, that is at once.
        """
        spec = self.spec
        retention_s = spec.scale_to_zero_pod_retention_period_s
        grace_s = spec.scale_to_zero_grace_period_s
        proxied_s = self.since_s if self.proxied_since_s is None else self.proxied_since_s
        latest_s = self.since_s + max(grace_s, retention_s)
        return min(latest_s, max(self.since_s + retention_s, proxied_s + grace_s))
