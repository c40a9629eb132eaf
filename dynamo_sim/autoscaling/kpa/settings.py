"""What a Knative autoscaler is told, and what follows from it (`spec 10, 4.1`)."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KpaSettings:
    """Annotations of a revision over the cluster's configuration (times in seconds).

    Attributes:
        metric: ``concurrency`` or ``rps``.
        container_concurrency: 0 for unlimited.
        target: the annotation; None when not given.
        concurrency_target_default, rps_target_default: of the cluster.
        utilization: ``target-utilization-percentage`` / 100.
        window_s: the stable window.
        panic_window_percentage, panic_threshold_percentage: in percent.
        max_scale: 0 for none.
        target_burst_capacity: -1 for unlimited.

    Raises:
        ValueError: a value Knative would refuse.
    """

    metric: str = "concurrency"
    container_concurrency: float = 0.0
    target: float | None = None
    concurrency_target_default: float = 100.0
    rps_target_default: float = 200.0
    utilization: float = 0.7
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
        if self.metric not in ("concurrency", "rps"):
            raise ValueError(f"metric is concurrency or rps, got {self.metric!r}")
        if not self.window_s >= 1:
            raise ValueError(f"the window is at least 1 s, got {self.window_s!r}")
        if self.target is not None and not self.target > 0:
            raise ValueError(f"the target is above 0, got {self.target!r}")
        if not 0 < self.utilization <= 1:
            raise ValueError(
                f"the target utilization is above 0 % and at most 100 %, got {self.utilization * 100:g} %"
            )
        if not 1 <= self.panic_window_percentage <= 100:
            raise ValueError(f"the panic window is from 1 % to 100 %, got {self.panic_window_percentage!r}")
        if not 110 <= self.panic_threshold_percentage <= 1000:
            raise ValueError(
                f"the panic threshold is from 110 % to 1000 %, got {self.panic_threshold_percentage!r}"
            )
        if not self.max_scale_up_rate > 1 or not self.max_scale_down_rate > 1:
            raise ValueError("the rates of scaling up and down are above 1")
        for name in ("min_scale", "max_scale", "initial_scale"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is at least 0, got {getattr(self, name)}")
        if self.activation_scale < 1:
            raise ValueError(f"activation_scale is at least 1, got {self.activation_scale}")
        if 0 < self.max_scale < self.min_scale:
            raise ValueError(f"max_scale ({self.max_scale}) is below min_scale ({self.min_scale})")

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
        return max(0.01, self.total * self.utilization)

    @property
    def panic_window_s(self) -> int:
        """Length of the panic window: whole seconds, at least 1."""
        return max(1, math.floor(self.window_s * self.panic_window_percentage / 100 + 0.5))
