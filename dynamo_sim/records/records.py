"""Everything a run leaves behind, before it is turned into tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dynamo_sim.engine.gaps import GapLog
from dynamo_sim.engine.pass_log import PassLog
from dynamo_sim.records.fleet_changes import FleetChange
from dynamo_sim.records.readings import Reading
from dynamo_sim.records.routing import RoutingDecision
from dynamo_sim.records.tier_use import TierUse
from dynamo_sim.workload.request import Request

FLEET = "fleet"
PREFILL = "prefill"
DECODE = "decode"


@dataclass(slots=True)
class FleetRecords:
    """What was observed of one fleet (times in ms of virtual time).

    Attributes:
        name: the section of the scenario that describes it: `FLEET`, or `PREFILL` and `DECODE`.
        changes: changes of its size, in order; the first one is its state at 0.
        passes: forward passes, one log a worker; none where they are not recorded.
        worker_seconds: integral of the number of workers that exist, in seconds (`spec 09, 5`).
        gpus_per_worker: GPUs of one worker.
        total_kv_tokens: tokens that the KV pool of one worker holds.
    """

    name: str = FLEET
    changes: list[FleetChange] = field(default_factory=list)
    passes: list[PassLog] = field(default_factory=list)
    worker_seconds: float = 0.0
    gpus_per_worker: int = 1
    total_kv_tokens: int = 0

    @property
    def worker_hours(self) -> float:
        """Time of all its workers, in hours."""
        return self.worker_seconds / 3600.0

    @property
    def gpu_hours(self) -> float:
        """Time of all its GPUs, in hours."""
        return self.worker_hours * self.gpus_per_worker


@dataclass(slots=True)
class RunRecords:
    """What was observed in a run (times in ms of virtual time).

    Attributes:
        requests: all requests that arrived, in order of arrival at the fleet.
        gaps: gaps between tokens, one log a worker.
        fleets: what was observed of each fleet: one, or prefill before decode.
        end_ms: the last instant that was handled.
        single_worker: whether the one-worker runtime of `spec 01, 13` ran (rows then name no worker or session).
        decisions: one row an evaluation of an autoscaler, in order.
        routing: decisions of the routers, in order; none where they are not recorded.
        readings: units and thresholds of the values in the decisions, where the policies say.
        tier_use: what the lower cache tiers did; None where there are none.
        warnings: what a reader of the results has to know, one sentence each.
    """

    requests: list[Request] = field(default_factory=list)
    gaps: list[GapLog] = field(default_factory=list)
    fleets: list[FleetRecords] = field(default_factory=list)
    end_ms: float = 0.0
    single_worker: bool = False
    decisions: list[dict[str, Any]] = field(default_factory=list)
    routing: list[RoutingDecision] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    tier_use: TierUse | None = None
    warnings: list[str] = field(default_factory=list)

    def fleet(self, name: str) -> FleetRecords:
        """The records of a fleet; empty ones if the run had none of that name."""
        return next((fleet for fleet in self.fleets if fleet.name == name), FleetRecords(name))

    @property
    def is_disaggregated(self) -> bool:
        """Whether prompts were computed by another fleet than the one that generated."""
        return len(self.fleets) > 1
