"""Everything a run leaves behind, before it is turned into tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dynamo_sim.engine.gaps import GapLog
from dynamo_sim.engine.pass_log import PassLog
from dynamo_sim.records.fleet_changes import FleetChange
from dynamo_sim.records.readings import Reading
from dynamo_sim.workload.request import Request


@dataclass(slots=True)
class RunRecords:
    """What was observed in a run (times in ms of virtual time).

    Attributes:
        requests: all requests that arrived, in order of arrival at the fleet.
        gaps: gaps between tokens, one log a worker.
        passes: forward passes, one log a worker; none where they are not recorded.
        fleet: changes of the fleet, in order; the first one is its state at 0.
        worker_seconds: integral of the number of workers that exist, in seconds (`spec 09, 5`).
        gpus_per_worker: GPUs of one worker.
        end_ms: the last instant that was handled.
        single_worker: whether the one-worker runtime of `spec 01, 13` ran (rows then name no worker or session).
        decisions: one row an evaluation of an autoscaler, in order.
        readings: units and thresholds of the values in the decisions, where the policies say.
        warnings: what a reader of the results has to know, one sentence each.
    """

    requests: list[Request] = field(default_factory=list)
    gaps: list[GapLog] = field(default_factory=list)
    passes: list[PassLog] = field(default_factory=list)
    fleet: list[FleetChange] = field(default_factory=list)
    worker_seconds: float = 0.0
    gpus_per_worker: int = 1
    end_ms: float = 0.0
    single_worker: bool = False
    total_kv_tokens: int = 0
    decisions: list[dict[str, Any]] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
