"""From a wish to a target: initial scale, bounds, and the way to zero (`spec 10, 4.4`)."""

from __future__ import annotations

from dataclasses import dataclass

from dynamo_sim.autoscaling.kubernetes.kpa.settings import KpaSettings


@dataclass(slots=True)
class Scaler:
    """What a revision remembers of its own activity.

    Attributes:
        reached_initial: whether ``initial-scale`` workers have ever been ready.
        active_since_s: since when it takes requests; None while it does not.
        inactive_since_s: since when it is inactive; None while it is not.
    """

    settings: KpaSettings
    reached_initial: bool = False
    active_since_s: float | None = None
    inactive_since_s: float | None = None

    @property
    def inactive(self) -> bool:
        """Whether requests are held in front of the fleet."""
        return self.inactive_since_s is not None

    def target(self, want: int, now_s: float, ready: int, current: int) -> tuple[int | None, str]:
        """(target or None, reason).

        Args:
            want: of the tick.
            ready: active workers.
            current: effective workers.
        """
        settings = self.settings
        self._note_ready(ready, now_s)
        lowest = settings.min_scale
        if not self.reached_initial:
            lowest = max(lowest, settings.initial_scale)
        if want < lowest:
            target, reason = lowest, "min scale" if self.reached_initial else "initial scale"
        elif 0 < settings.max_scale < want:
            target, reason = settings.max_scale, "max scale"
        else:
            target, reason = want, "stable"
        if target > 0:
            self._activate(ready, now_s)
            return target, reason
        return self._toward_zero(now_s, current)

    def _note_ready(self, ready: int, now_s: float) -> None:
        if ready >= self.settings.initial_scale:
            self.reached_initial = True
        if ready > 0 and self.active_since_s is None and not self.inactive:
            self.active_since_s = now_s

    def _activate(self, ready: int, now_s: float) -> None:
        if self.inactive:
            self.inactive_since_s = None
            self.active_since_s = now_s if ready > 0 else None

    def _toward_zero(self, now_s: float, current: int) -> tuple[int | None, str]:
        settings = self.settings
        if not settings.enable_scale_to_zero:
            return 1, "scale to zero is off"
        if self.inactive_since_s is None:
            if current == 0:
                return 0, "at zero"
            if self.active_since_s is None or now_s - self.active_since_s < settings.window_s:
                return min(1, current), "active for less than the window"
            self.inactive_since_s = now_s
            self.active_since_s = None
        grace = max(settings.scale_to_zero_grace_period_s, settings.scale_to_zero_pod_retention_period_s)
        if now_s - self.inactive_since_s >= grace:
            return 0, "scale to zero"
        return None, "inactive, grace period"
