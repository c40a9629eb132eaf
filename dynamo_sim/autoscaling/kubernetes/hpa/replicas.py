"""From one metric to a number of replicas (`spec 10, 2.4`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dynamo_sim.autoscaling.kubernetes.hpa.pods import Pod, PodGroups, PodId, PodSample
from dynamo_sim.autoscaling.kubernetes.hpa.spec import Tolerance


class MetricFailed(Exception):
    """A metric that gives no recommendation; says why."""


def per_pod_replicas(
    current: int,
    target_type: str,
    target: int,
    groups: PodGroups,
    samples: Mapping[PodId, PodSample],
    requests_milli: Mapping[PodId, int],
    tolerance: Tolerance,
) -> int:
    """The recommendation of a metric with a sample a worker (``Pods``, ``Resource``).

    Args:
        current: effective workers.
        target_type: ``AverageValue`` or ``Utilization``.
        target: thousandths, or percent for ``Utilization``.
        groups: of `group_pods`.
        samples: by worker; those of ignored and unready workers are left out here.
        requests_milli: by worker, for ``Utilization``; workers without one are skipped.

    Raises:
        MetricFailed: no worker, no sample, or nothing requested.
    """
    if not (groups.ready or groups.unready or groups.missing or groups.ignored):
        raise MetricFailed("no workers")
    skip = {*groups.ignored, *groups.unready}
    used = {pod: sample.milli for pod, sample in samples.items() if pod not in skip}
    if not used:
        raise MetricFailed("no samples of ready workers")
    utilization = target_type == "Utilization"

    def ratio_of(milli: Mapping[PodId, int]) -> float:
        if not utilization:
            return sum(milli.values()) // len(milli) / target
        counted = [pod for pod in milli if pod in requests_milli]
        requested = sum(requests_milli[pod] for pod in counted)
        if requested == 0:
            raise MetricFailed("no worker requests anything of the resource")
        return sum(milli[pod] for pod in counted) * 100 // requested / target

    ratio = ratio_of(used)
    up_unready = bool(groups.unready) and ratio > 1.0
    if not up_unready and not groups.missing:
        return current if tolerance.covers(ratio) else math.ceil(ratio * len(groups.ready))
    for pod in groups.missing:
        if ratio < 1.0:
            used[pod] = requests_milli.get(pod, 0) * max(100, target) // 100 if utilization else target
        elif ratio > 1.0:
            used[pod] = 0
    if up_unready:
        for pod in groups.unready:
            used[pod] = 0
    ratio2 = ratio_of(used)
    if tolerance.covers(ratio2) or (ratio < 1.0 < ratio2) or (ratio2 < 1.0 < ratio):
        return current
    desired = math.ceil(ratio2 * len(used))
    if (ratio2 < 1.0 and desired > current) or (ratio2 > 1.0 and desired < current):
        return current
    return desired


def total_replicas(
    current: int,
    target_type: str,
    target_milli: int,
    total_milli: int,
    pods: Sequence[Pod],
    tolerance: Tolerance,
) -> int:
    """The recommendation of a metric with one number (``Object``, ``External``).

    ``Value`` multiplies the number of pods that are running and ready, not the replicas: workers that start make the
    recommendation shrink, and workers that drain make it grow, as they count until they are gone.

    Raises:
        MetricFailed: ``Value``, and there are replicas but no worker at all.
    """
    if target_type == "Value":
        ratio = total_milli / target_milli
        if current == 0:
            return math.ceil(ratio)
        if tolerance.covers(ratio):
            return current
        if not pods:
            raise MetricFailed("no workers")
        return math.ceil(ratio * sum(pod.is_running_and_ready for pod in pods))
    if current != 0 and tolerance.covers(total_milli / (target_milli * current)):
        return current
    return math.ceil(total_milli / target_milli)
