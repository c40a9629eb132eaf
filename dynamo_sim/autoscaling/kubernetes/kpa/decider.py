"""One tick of the autoscaler: from two averages to a number of workers (`spec 10, 4.3`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dynamo_sim.autoscaling.kubernetes.kpa.targets import capacity, target_of
from dynamo_sim.scenario.autoscaler.kpa import KpaScaling

SLOT_S = 2.0
"""Length of a tick, and of a slot of the scale-down delay."""


@dataclass(frozen=True, slots=True)
class Desired:
    """The outcome of a tick.

    Attributes:
        desired: workers.
        excess_burst_capacity: below 0 the activator is in the path of the requests.
        in_panic: whether the panic window counts.
        over_threshold: whether this tick begins a panic, or prolongs it.
        limit: what made it another number than the averages ask for; empty for nothing.
    """

    desired: int
    excess_burst_capacity: int
    in_panic: bool
    over_threshold: bool
    limit: str = ""


@dataclass(slots=True)
class Decider:
    """The memory between ticks.

    Attributes:
        spec: the settings.
        reachable: whether requests are routed to the revision.
        panic_since_s: the last surge of the present panic; None outside of it.
        max_desired: the most workers that were desired in the present panic.
    """

    spec: KpaScaling
    reachable: bool = True
    panic_since_s: float | None = None
    max_desired: int = 0
    _desired_by_slot: dict[int, int] = field(default_factory=dict)
    _target: float = field(init=False)
    _capacity: float = field(init=False)

    def __post_init__(self) -> None:
        self._target, self._capacity = target_of(self.spec), capacity(self.spec)

    @classmethod
    def started(cls, spec: KpaScaling, ready: int, now_s: float) -> Decider:
        """A new autoscaler: one that finds more than one ready worker begins in panic."""
        return cls(spec, panic_since_s=now_s, max_desired=ready) if ready > 1 else cls(spec)

    def tick(self, now_s: float, ready: int, stable: float, panic: float) -> Desired:
        """Decide.

        Args:
            now_s: the time.
            ready: active workers.
            stable, panic: averages of the two windows.
        """
        spec = self.spec
        by_stable, by_panic = math.ceil(stable / self._target), math.ceil(panic / self._target)
        desired, limit = self._limited(by_stable, ready)
        surge, surge_limit = self._limited(by_panic, ready)
        over = by_panic / max(1, ready) >= spec.panic_threshold_percentage / 100
        if over:
            self.panic_since_s = now_s
        elif self.panic_since_s is not None and self.panic_since_s + spec.window_s < now_s:
            self.panic_since_s = None
            self.max_desired = 0
        if self.panic_since_s is not None:
            if surge >= desired:
                desired, limit = surge, surge_limit
            if self.max_desired > desired:
                desired, limit = self.max_desired, "no scale-down in panic"
            self.max_desired = desired
        if spec.scale_down_delay_s > 0 and self.reachable:
            delayed = self._delayed(desired, now_s)
            if delayed != desired:
                desired, limit = delayed, "scale-down delay"
        return Desired(desired, self._excess(ready, panic), self.panic_since_s is not None, over, limit)

    def _limited(self, asked: int, ready: int) -> tuple[int, str]:
        """(desired workers, what limits them) for a number that a window asks for."""
        spec, ready = self.spec, max(1, ready)
        up = math.ceil(spec.max_scale_up_rate * ready)
        down = math.floor(ready / spec.max_scale_down_rate) if self.reachable else 0
        desired, limit = asked, ""
        if desired < down:
            desired, limit = down, "max scale-down rate"
        if desired > up:
            desired, limit = up, "max scale-up rate"
        if asked > 0 and desired < spec.activation_scale and spec.activation_scale > 1:
            desired, limit = spec.activation_scale, "activation scale"
        return desired, limit

    def _delayed(self, desired: int, now_s: float) -> int:
        """The most that was desired within the scale-down delay."""
        slot = math.floor(now_s / SLOT_S)
        slots = math.ceil(self.spec.scale_down_delay_s / SLOT_S)
        self._desired_by_slot = {at: size for at, size in self._desired_by_slot.items() if at > slot - slots}
        self._desired_by_slot[slot] = max(desired, self._desired_by_slot.get(slot, 0))
        return max(self._desired_by_slot.values())

    def _excess(self, ready: int, panic: float) -> int:
        burst = self.spec.target_burst_capacity
        if burst == 0:
            return 0
        if burst < 0:
            return -1
        return math.floor(ready * self._capacity - burst - panic)
