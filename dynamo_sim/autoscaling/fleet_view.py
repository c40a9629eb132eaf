"""What a policy gets to see: the fleet as its orchestrator knows it, and the metrics (`spec 10, 1 and 8`)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from dynamo_sim.autoscaling.metrics.query import MetricQuery


class WorkerPhase(Enum):
    """Where a worker is in its life (`spec 10, 9`)."""

    PROVISIONING = "provisioning"
    PULLING = "pulling"
    LOADING = "loading"
    WARMING = "warming"
    READY = "ready"
    DRAINING = "draining"
    FAILED = "failed"

    LEAVING = DRAINING
    """The earlier name of `DRAINING`."""

    @property
    def is_pending(self) -> bool:
        """What Kubernetes calls Pending: nothing of the worker runs yet."""
        return self in (WorkerPhase.PROVISIONING, WorkerPhase.PULLING)

    @property
    def is_starting(self) -> bool:
        """On its way to being ready."""
        return self in (
            WorkerPhase.PROVISIONING,
            WorkerPhase.PULLING,
            WorkerPhase.LOADING,
            WorkerPhase.WARMING,
        )


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One worker as the orchestrator sees it (times in seconds).

    Attributes:
        id: of the worker.
        phase: where it is in its life.
        created_s: when it was asked for.
        ready_since_s: since when it is ready; None before.
    """

    id: int
    phase: WorkerPhase
    created_s: float = 0.0
    ready_since_s: float | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it takes requests."""
        return self.phase is WorkerPhase.READY


@dataclass(frozen=True, slots=True)
class FleetView:
    """The workers of a fleet, ascending by id, and what follows from them.

    Attributes:
        workers: all that exist, draining ones included.
        startup_s: how long a new worker is expected to take until it is ready.
        gpus_per_worker: GPUs one worker occupies.
    """

    workers: tuple[WorkerView, ...] = ()
    startup_s: float = 0.0
    gpus_per_worker: int = 1

    @classmethod
    def of(
        cls, active: int, starting: int = 0, draining: int = 0, now_s: float = 0.0, **more: Any
    ) -> FleetView:
        """A fleet made up from counts, for tests and notebooks."""
        if "leaving" in more:
            warnings.warn("leaving of a FleetView is now called draining", DeprecationWarning, stacklevel=2)
            draining = more.pop("leaving")
        phases = (
            [WorkerPhase.READY] * active
            + [WorkerPhase.LOADING] * starting
            + [WorkerPhase.DRAINING] * draining
        )
        return cls(
            tuple(
                WorkerView(i, phase, now_s, None if phase is WorkerPhase.LOADING else now_s)
                for i, phase in enumerate(phases)
            ),
            **more,
        )

    @property
    def active(self) -> int:
        """Workers that take requests."""
        return sum(worker.phase is WorkerPhase.READY for worker in self.workers)

    def warmed_up(self, now_s: float, warmup_s: float) -> int:
        """Active workers that have been ready for ``warmup_s``; those the run began with are taken to have been."""
        return sum(
            worker.phase is WorkerPhase.READY
            and worker.ready_since_s is not None
            and (worker.ready_since_s <= 0 or now_s - worker.ready_since_s >= warmup_s)
            for worker in self.workers
        )

    @property
    def starting(self) -> int:
        """Workers on their way."""
        return sum(worker.phase.is_starting for worker in self.workers)

    @property
    def draining(self) -> int:
        """Workers that finish what they have and go."""
        return sum(worker.phase is WorkerPhase.DRAINING for worker in self.workers)

    @property
    def leaving(self) -> int:
        """What `draining` was called before."""
        warnings.warn("leaving of a FleetView is now called draining", DeprecationWarning, stacklevel=2)
        return self.draining

    @property
    def effective(self) -> int:
        """Active and starting workers: what every rule calls *current*, and a Deployment its replicas."""
        return sum(w.phase is WorkerPhase.READY or w.phase.is_starting for w in self.workers)


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of one worker.

    Attributes:
        value: in the metric's unit.
        at_s: when it was taken.
        window_s: over how much time it was taken.
    """

    value: float
    at_s: float = 0.0
    window_s: float = 0.0


class View(Protocol):
    """The metrics as they are visible at the time of a decision. None always means: no data."""

    def value(self, query: MetricQuery | str) -> float | None:
        """One number for the whole fleet."""

    def per_worker(self, query: MetricQuery | str) -> Mapping[int, Sample]:
        """A sample of every worker that has one, by worker id."""

    def bridge(self) -> Mapping[str, Any]:
        """Passes and traffic since the last evaluation, with the keys of `spec 10, 6.1`; reading empties the buffers.

        Only for policies that say ``needs_passes = True``.
        """


@dataclass
class StaticView:
    """A view made up by hand, for tests and notebooks: every query of a metric gets the same answer.

    Attributes:
        values: metric name to value, or to None for no data.
        samples: metric name to samples by worker id (numbers will do).
        ticks: what `bridge` answers.
    """

    values: Mapping[str, float | None] = field(default_factory=dict)
    samples: Mapping[str, Mapping[int, Sample | float]] = field(default_factory=dict)
    ticks: Mapping[str, Any] = field(default_factory=dict)

    def value(self, query: MetricQuery | str) -> float | None:
        asked = MetricQuery.of(query)
        found = self.values.get(asked.metric)
        if found is None and asked.metric in self.samples:
            numbers = [sample.value for sample in self.per_worker(query).values()]
            return reduced(numbers, asked.reduce or "avg")
        return None if found is None else found * asked.scale

    def per_worker(self, query: MetricQuery | str) -> Mapping[int, Sample]:
        asked = MetricQuery.of(query)
        return {
            worker: Sample(s.value * asked.scale, s.at_s, s.window_s)
            if isinstance(s, Sample)
            else Sample(s * asked.scale)
            for worker, s in self.samples.get(asked.metric, {}).items()
        }

    def bridge(self) -> Mapping[str, Any]:
        return self.ticks


class RecordingView:
    """A view that notes what it is asked for, of a policy that does not say what it read.

    Attributes:
        values: answers by query; of samples by worker their mean.
    """

    def __init__(self, view: View) -> None:
        self.values: dict[str, float | None] = {}
        self._view = view

    def value(self, query: MetricQuery | str) -> float | None:
        found = self._view.value(query)
        self.values[str(MetricQuery.of(query))] = found
        return found

    def per_worker(self, query: MetricQuery | str) -> Mapping[int, Sample]:
        found = self._view.per_worker(query)
        self.values[str(MetricQuery.of(query))] = reduced([sample.value for sample in found.values()], "avg")
        return found

    def bridge(self) -> Mapping[str, Any]:
        return self._view.bridge()


def reduced(values: list[float], reduce: str) -> float | None:
    """One number of several; None of none (`spec 10, 8.3`)."""
    if not values:
        return None
    if reduce == "sum":
        return sum(values)
    if reduce == "max":
        return max(values)
    if reduce == "min":
        return min(values)
    return sum(values) / len(values)
