"""Knative's decider and its windows, written down plainly from `autoscaler.go` and `bucketing.go` (August 2026).

Shares no code with the package; `test_random_timelines.py` holds the package against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class PlainKpa:
    target: float
    total: float
    burst: float
    up_rate: float
    down_rate: float
    panic_threshold: float
    window: float
    panic_window: int
    delay: float
    activation: int
    panicking_since: float | None = None
    most_in_panic: int = 0
    seconds: dict[int, float] = field(default_factory=dict)
    wanted: list[tuple[int, int]] = field(default_factory=list)

    def begin(self, ready: int, now: float) -> None:
        if ready > 1:
            self.panicking_since, self.most_in_panic = now, ready

    def record(self, now: float, value: float) -> None:
        """Add to the second; after a silence as long as the window all before is forgotten."""
        second = math.floor(now)
        self.seconds[second] = self.seconds.get(second, 0.0) + value

    def average(self, now: float, buckets: int) -> float | None:
        """Over the buckets of a window, as they stood after the last record."""
        if not self.seconds:
            return None
        first = last = None
        kept: dict[int, float] = {}
        for second in sorted(self.seconds):
            if last is not None and second - last >= buckets:
                kept, first = {}, None
            first, last = second if first is None else first, second
            kept[second] = self.seconds[second]
        assert first is not None and last is not None
        silent = max(0, math.floor(now) - last)
        if silent >= buckets:
            return 0.0
        young = [value for second, value in kept.items() if second > last - buckets + silent]
        mean = sum(young) / min(last - first + 1, buckets - silent)
        return math.copysign(math.floor(abs(mean) * 1e6 + 0.5) / 1e6, mean)

    def scale(self, now: float, ready: int) -> tuple[int, int] | None:
        """(desired replicas, excess burst capacity), or None without data."""
        stable = self.average(now, max(1, math.ceil(self.window)))
        panic = self.average(now, self.panic_window)
        if stable is None or panic is None:
            return None
        pods = max(1, ready)
        most, least = math.ceil(self.up_rate * pods), math.floor(pods / self.down_rate)
        for_stable, for_panic = math.ceil(stable / self.target), math.ceil(panic / self.target)
        desired = min(max(for_stable, least), most)
        in_panic = min(max(for_panic, least), most)
        if self.activation > 1 and for_stable > 0:
            desired = max(desired, self.activation)
        if self.activation > 1 and for_panic > 0:
            in_panic = max(in_panic, self.activation)
        if for_panic / pods >= self.panic_threshold:
            self.panicking_since = now
        elif self.panicking_since is not None and self.panicking_since + self.window < now:
            self.panicking_since, self.most_in_panic = None, 0
        if self.panicking_since is not None:
            self.most_in_panic = max(self.most_in_panic, desired, in_panic)
            desired = self.most_in_panic
        if self.delay > 0:
            slot = math.floor(now / 2)
            self.wanted.append((slot, desired))
            desired = max(n for at, n in self.wanted if at > slot - math.ceil(self.delay / 2))
        excess = {0: 0, -1: -1}.get(int(self.burst), math.floor(ready * self.total - self.burst - panic))
        return desired, excess
