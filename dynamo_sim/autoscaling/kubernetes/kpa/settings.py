"""What a Knative autoscaler is told, and what follows from it (`spec 10, 4.1`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_WINDOW_S = 86400.0
"""Of the stable window and of the delay of a scale-in."""

DEFAULT_UTILIZATION = 0.7
"""Share of the target that a worker is meant to have; of requests per second a cluster cannot set another one."""


class BadSettings(ValueError):
    """Settings that Knative would refuse.

    Attributes:
        found: name of the setting and what is wrong with it, all of them.
    """

    def __init__(self, found: tuple[tuple[str, str], ...]) -> None:
        self.found = found
        super().__init__("; ".join(f"{name} {text}" for name, text in found))


@dataclass(frozen=True, slots=True)
class KpaSettings:
    """Annotations of a revision over the cluster's configuration (times in seconds).

    Attributes:
        metric: ``concurrency`` or ``rps``.
        container_concurrency: 0 for unlimited.
        target: the annotation; None when not given.
        concurrency_target_default, rps_target_default: of the cluster.
        utilization: the annotation ``target-utilization-percentage`` / 100; None when not given.
        concurrency_utilization: ``container-concurrency-target-percentage`` / 100 of the cluster; for concurrency only.
        window_s: the stable window.
        panic_window_percentage, panic_threshold_percentage: in percent.
        max_scale: 0 for none.
        target_burst_capacity: -1 for unlimited.

    Raises:
        BadSettings: values Knative would refuse.
    """

    metric: str = "concurrency"
    container_concurrency: float = 0.0
    target: float | None = None
    concurrency_target_default: float = 100.0
    rps_target_default: float = 200.0
    utilization: float | None = None
    concurrency_utilization: float = DEFAULT_UTILIZATION
    window_s: float = 60.0
    panic_window_percentage: float = 10.0
    panic_threshold_percentage: float = 200.0
    max_scale_up_rate: float = 1000.0
    max_scale_down_rate: float = 2.0
    min_scale: int = 0
    max_scale: int = 0
    initial_scale: int = 1
    activation_scale: int = 1
    scale_down_delay_s: float = 0.0
    scale_to_zero_grace_period_s: float = 30.0
    scale_to_zero_pod_retention_period_s: float = 0.0
    enable_scale_to_zero: bool = True
    target_burst_capacity: float = 211.0
    name: str = ""

    def __post_init__(self) -> None:
        found = tuple(self._faults())
        if found:
            raise BadSettings(found)

    def _faults(self) -> Iterator[tuple[str, str]]:
        """Fields that Knative would refuse, and what they must be."""
        if self.metric not in ("concurrency", "rps"):
            yield "metric", f"is concurrency or rps, got {self.metric!r}"
        if not self.container_concurrency >= 0:
            yield "container_concurrency", f"must be at least 0, got {self.container_concurrency:g}"
        if not 0 <= self.scale_down_delay_s <= LONGEST_WINDOW_S:
            yield (
                "scale_down_delay_s",
                f"must be from 0 s to {LONGEST_WINDOW_S:g} s, got {self.scale_down_delay_s:g} s",
            )
        for name in ("target", "concurrency_target_default", "rps_target_default"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                yield name, f"must be above 0, got {getattr(self, name):g}"
        for name in ("utilization", "concurrency_utilization"):
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                yield name, f"must be above 0 % and at most 100 %, got {share * 100:g} %"
        if not 1 <= self.window_s <= LONGEST_WINDOW_S:
            yield "window_s", f"must be from 1 s to {LONGEST_WINDOW_S:g} s, got {self.window_s:g} s"
        if not 1 <= self.panic_window_percentage <= 100:
            yield (
                "panic_window_percentage",
                f"must be from 1 % to 100 %, got {self.panic_window_percentage:g}",
            )
        if not 110 <= self.panic_threshold_percentage <= 1000:
            yield (
                "panic_threshold_percentage",
                f"must be from 110 % to 1000 %, got {self.panic_threshold_percentage:g}",
            )
        for name in ("max_scale_up_rate", "max_scale_down_rate"):
            if not getattr(self, name) > 1:
                yield name, f"must be above 1, got {getattr(self, name):g}"
        for name in ("min_scale", "max_scale", "initial_scale"):
            if getattr(self, name) < 0:
                yield name, f"must be at least 0, got {getattr(self, name)}"
        if self.activation_scale < 1:
            yield "activation_scale", f"must be at least 1, got {self.activation_scale}"
        if 0 < self.max_scale < self.min_scale:
            yield (
                "max_scale",
                f"must be at least min-scale, {self.min_scale}, or 0 for none; got {self.max_scale}",
            )
        if self.target_burst_capacity < 0 and self.target_burst_capacity != -1:
            yield "target_burst_capacity", f"must be -1 or at least 0, got {self.target_burst_capacity:g}"

    @property
    def total(self) -> float:
        """What one worker can take."""
        if self.metric == "rps":
            return self.rps_target_default if self.target is None else self.target
        limit = self.container_concurrency
        if self.target is not None:
            return min(self.target, limit) if limit > 0 else self.target
        return limit if limit > 0 else self.concurrency_target_default

    @property
    def target_value(self) -> float:
        """What one worker is meant to have."""
        of_cluster = self.concurrency_utilization if self.metric == "concurrency" else DEFAULT_UTILIZATION
        return max(0.01, self.total * (of_cluster if self.utilization is None else self.utilization))

    @property
    def initial_excess_burst_capacity(self) -> int:
        """What the first workers leave of the burst capacity; below 0 the activator is in the path from the start."""
        burst = self.target_burst_capacity
        return int(burst) if burst in (0, -1) else math.trunc(self.initial_scale * self.total - burst)

    @property
    def panic_window_s(self) -> int:
        """Length of the panic window: whole seconds, at least 1."""
        return max(1, math.floor(self.window_s * self.panic_window_percentage / 100 + 0.5))
