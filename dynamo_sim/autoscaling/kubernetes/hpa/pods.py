"""Which workers count for a metric (`spec 10, 2.3`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynamo_sim.autoscaling.fleet_view import FleetView, WorkerPhase

PodId = Any


@dataclass(frozen=True, slots=True)
class Pod:
    """A worker as an HPA sees it (times in seconds).

    Attributes:
        id: any name.
        phase: ``Pending``, ``Running``, ``Failed`` or ``Succeeded``.
        started_s: when it began; None before.
        ready: its readiness condition; None when it has none.
        ready_changed_s: since when the condition is what it is.
        deleting: whether it is being deleted.
    """

    id: PodId
    phase: str = "Running"
    started_s: float | None = None
    ready: bool | None = None
    ready_changed_s: float = 0.0
    deleting: bool = False

    @property
    def is_running_and_ready(self) -> bool:
        """What `Value` targets count: a pod that is being deleted counts until it is gone."""
        return self.phase == "Running" and self.ready is True


@dataclass(frozen=True, slots=True)
class PodSample:
    """A metric of one worker: thousandths, when it was taken, and over how many seconds."""

    milli: int
    at_s: float = -math.inf
    window_s: float = 0.0


@dataclass(slots=True)
class PodGroups:
    """The four groups, each in the order of the workers."""

    ready: list[PodId] = field(default_factory=list)
    unready: list[PodId] = field(default_factory=list)
    missing: list[PodId] = field(default_factory=list)
    ignored: list[PodId] = field(default_factory=list)


def group_pods(
    pods: Sequence[Pod],
    samples: Mapping[PodId, PodSample],
    is_cpu: bool,
    now_s: float,
    cpu_initialization_period_s: float = 300.0,
    initial_readiness_delay_s: float = 30.0,
) -> PodGroups:
    """Sort workers into groups; the first rule that fits decides.

    Args:
        pods: the workers.
        samples: of the metric, by worker.
        is_cpu: whether the metric is the resource ``cpu``; only then readiness plays a part.
    """
    groups = PodGroups()
    for pod in pods:
        if pod.deleting or pod.phase == "Failed":
            groups.ignored.append(pod.id)
        elif pod.phase == "Pending":
            groups.unready.append(pod.id)
        elif pod.id not in samples:
            groups.missing.append(pod.id)
        elif is_cpu and _is_unready(
            pod, samples[pod.id], now_s, cpu_initialization_period_s, initial_readiness_delay_s
        ):
            groups.unready.append(pod.id)
        else:
            groups.ready.append(pod.id)
    return groups


def _is_unready(pod: Pod, sample: PodSample, now_s: float, initialization_s: float, delay_s: float) -> bool:
    if pod.ready is None or pod.started_s is None:
        return True
    if pod.started_s + initialization_s > now_s:
        return not pod.ready or sample.at_s < pod.ready_changed_s + sample.window_s
    return not pod.ready and pod.started_s + delay_s > pod.ready_changed_s


def pods_of(fleet: FleetView) -> list[Pod]:
    """The workers of a fleet as pods: provisioning and pulling ones are Pending, loading ones Running and not ready."""
    pods = []
    for worker in fleet.workers:
        if worker.phase is WorkerPhase.FAILED:
            pods.append(Pod(worker.id, "Failed", worker.created_s))
        elif worker.phase.is_pending:
            pods.append(Pod(worker.id, "Pending", worker.created_s, False, worker.created_s))
        elif worker.phase.is_starting:
            pods.append(Pod(worker.id, "Running", worker.created_s, False, worker.created_s))
        else:
            since = worker.created_s if worker.ready_since_s is None else worker.ready_since_s
            draining = worker.phase is WorkerPhase.DRAINING
            pods.append(Pod(worker.id, "Running", worker.created_s, True, since, draining))
    return pods
