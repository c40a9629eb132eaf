"""Gathers what a run leaves behind while it runs."""

from __future__ import annotations

from dynamo_sim.fleet.worker import Worker
from dynamo_sim.records.fleet_changes import FleetCause, FleetChange
from dynamo_sim.records.records import FLEET, FleetRecords, RunRecords
from dynamo_sim.workload.request import Request


class Collector:
    """Notes requests, the schedulers of the workers of one fleet, and changes of that fleet in a `RunRecords`.

    Args:
        record_passes: whether every forward pass is recorded.
        records: the records of the run, where there are several fleets in it; None for new ones.
        name: of the fleet.
        gpus_per_worker: GPUs of one worker.

    Attributes:
        records: of the run.
        fleet: of the fleet; they are part of ``records``.
    """

    def __init__(
        self,
        record_passes: bool = False,
        records: RunRecords | None = None,
        name: str = FLEET,
        gpus_per_worker: int = 1,
    ) -> None:
        self.records = RunRecords() if records is None else records
        self.fleet = FleetRecords(name, gpus_per_worker=gpus_per_worker)
        self.records.fleets.append(self.fleet)
        self.record_passes = record_passes
        self._workers = 0
        self._since_ms = 0.0

    def watch(self, worker: Worker) -> None:
        """Note a worker when it is made."""
        scheduler = worker.scheduler
        self.records.gaps.append(scheduler.gaps)
        self.fleet.total_kv_tokens = scheduler.total_kv_tokens
        if self.record_passes:
            self.fleet.passes.append(scheduler.record_passes(worker.id))

    def arrived(self, request: Request) -> None:
        """Note a request that has arrived at the fleet."""
        self.records.requests.append(request)

    def fleet_is(
        self,
        now_ms: float,
        active: int,
        starting: int,
        draining: int,
        cause: FleetCause,
        worker_ids: tuple[int, ...] = (),
    ) -> None:
        """Note the size of the fleet from ``now_ms`` on."""
        self.worker_time_until(now_ms)
        self._workers = active + starting + draining
        self.fleet.changes.append(FleetChange(now_ms, active, starting, draining, cause, worker_ids))

    def worker_time_until(self, now_ms: float) -> None:
        """Add up the time of the workers that exist (`spec 01, 12`)."""
        self.fleet.worker_seconds += self._workers * (now_ms - self._since_ms) / 1000.0
        self._since_ms = now_ms
