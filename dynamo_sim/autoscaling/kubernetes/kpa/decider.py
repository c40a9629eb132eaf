"""One tick of the autoscaler: from two averages to a number of workers (`spec 10, 4.3`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

SLOT_S = 2.0
"""Length of a tick, and of a slot of the scale-down delay."""


@dataclass(frozen=True, slots=True)
class DeciderConfig:
    """What a tick needs to know; ``panic_threshold`` is a ratio."""

    target: float
    total: float
    target_burst_capacity: float = 211.0
    max_scale_up_rate: float = 1000.0
    max_scale_down_rate: float = 2.0
    panic_threshold: float = 2.0
    stable_window_s: float = 60.0
    scale_down_delay_s: float = 0.0
    reachable: bool = True
    activation_scale: int = 1


@dataclass(frozen=True, slots=True)
class Desired:
    """The outcome of a tick."""

    desired: int
    excess_burst_capacity: int
    in_panic: bool
    over_threshold: bool


@dataclass(slots=True)
class Decider:
    """The memory between ticks.

    Attributes:
        panic_since_s: the last surge of the present panic; None outside of it.
        top: the largest wish of the present panic.
    """

    config: DeciderConfig
    panic_since_s: float | None = None
    top: int = 0
    _wishes: dict[int, int] = field(default_factory=dict)

    @classmethod
    def started(cls, config: DeciderConfig, ready: int, now_s: float) -> Decider:
        """A new autoscaler: one that finds more than one ready worker begins in panic."""
        return cls(config, now_s, ready) if ready > 1 else cls(config)

    def tick(self, now_s: float, ready: int, stable: float, panic: float) -> Desired:
        """Decide.

        Args:
            ready: active workers.
            stable, panic: averages of the two windows.
        """
        config = self.config
        r = max(1, ready)
        up = math.ceil(config.max_scale_up_rate * r)
        down = math.floor(r / config.max_scale_down_rate) if config.reachable else 0
        wish_stable = math.ceil(stable / config.target)
        wish_panic = math.ceil(panic / config.target)
        want = min(max(wish_stable, down), up)
        surge = min(max(wish_panic, down), up)
        if config.activation_scale > 1:
            if wish_stable > 0:
                want = max(want, config.activation_scale)
            if wish_panic > 0:
                surge = max(surge, config.activation_scale)
        over = wish_panic / r >= config.panic_threshold
        if over:
            self.panic_since_s = now_s
        elif self.panic_since_s is not None and self.panic_since_s + config.stable_window_s < now_s:
            self.panic_since_s = None
            self.top = 0
        if self.panic_since_s is not None:
            self.top = max(self.top, want, surge)
            want = self.top
        if config.scale_down_delay_s > 0 and config.reachable:
            want = self._delayed(want, now_s)
        return Desired(want, self._excess(ready, panic), self.panic_since_s is not None, over)

    def _delayed(self, want: int, now_s: float) -> int:
        slot = math.floor(now_s / SLOT_S)
        slots = math.ceil(self.config.scale_down_delay_s / SLOT_S)
        self._wishes = {at: wish for at, wish in self._wishes.items() if at > slot - slots}
        self._wishes[slot] = max(want, self._wishes.get(slot, 0))
        return max(self._wishes.values())

    def _excess(self, ready: int, panic: float) -> int:
        burst = self.config.target_burst_capacity
        if burst == 0:
            return 0
        if burst < 0:
            return -1
        return math.floor(ready * self.config.total - burst - panic)
