"""From when to when each worker existed, read off the changes of a fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_sim.records.records import FleetChange


@dataclass(slots=True)
class Lifespan:
    """The life of one worker, in ms of virtual time.

    Attributes:
        worker_id: who.
        since_ms: when it was made.
        active_ms: from when it took requests; None if it never did.
        leaving_ms: from when it only finished what it had; None if it never was told to leave.
        until_ms: when it was gone; the end of the run for those that stayed.
    """

    worker_id: int
    since_ms: float
    active_ms: float | None
    leaving_ms: float | None
    until_ms: float


def lifespans(changes: Sequence[FleetChange], end_ms: float) -> list[Lifespan]:
    """Lives of all workers named in ``changes``, by worker id; ``end_ms`` is the end of the run."""
    lives: dict[int, Lifespan] = {}
    starting = 0
    for change in changes:
        at_ms = change.at_ms
        # Workers of a fleet without startup time are active when they are made.
        active_ms = None if change.starting > starting else at_ms
        starting = change.starting
        for worker_id in change.worker_ids:
            if change.cause in ("start", "added"):
                lives[worker_id] = Lifespan(worker_id, at_ms, active_ms, None, max(end_ms, at_ms))
            elif (life := lives.get(worker_id)) is None:
                continue
            elif change.cause == "ready":
                life.active_ms = at_ms
            elif change.cause == "marked":
                life.leaving_ms = at_ms
            elif change.cause in ("removed", "cancelled"):
                life.until_ms = at_ms
    return [lives[worker_id] for worker_id in sorted(lives)]
