"""What the settings of a Knative revision come to (`spec 10, 4.1`)."""

from __future__ import annotations

import math

from dynamo_sim.scenario.autoscaler.kpa import KpaScaling

RPS_UTILIZATION = 0.7
"""Share of the target of requests per second that a worker is meant to have; a cluster cannot set another one."""

MIN_TARGET = 0.01


def capacity(spec: KpaScaling) -> float:
    """What one worker can take, in requests or requests per second."""
    if spec.metric == "rps":
        return spec.rps_target_default if spec.target is None else spec.target
    limit = spec.container_concurrency
    if spec.target is not None:
        return min(spec.target, limit) if limit > 0 else spec.target
    return limit if limit > 0 else spec.concurrency_target_default


def target_of(spec: KpaScaling) -> float:
    """What one worker is meant to have: a share of its capacity."""
    of_cluster = spec.concurrency_utilization if spec.metric == "concurrency" else RPS_UTILIZATION
    return max(MIN_TARGET, capacity(spec) * (of_cluster if spec.utilization is None else spec.utilization))


def initial_excess_burst_capacity(spec: KpaScaling) -> int:
    """What the first workers leave of the burst capacity; below 0 the activator is in the path from the start."""
    burst = spec.target_burst_capacity
    return int(burst) if burst in (0, -1) else math.trunc(spec.initial_scale * capacity(spec) - burst)


def panic_window_s(spec: KpaScaling) -> int:
    """Length of the panic window: whole seconds, at least 1."""
    return max(1, math.floor(spec.window_s * spec.panic_window_percentage / 100 + 0.5))
