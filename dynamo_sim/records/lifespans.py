"""From when to when each worker existed, read off the changes of a fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_sim.records.fleet_changes import FleetCause, FleetChange


@dataclass(slots=True)
class Lifespan:
    """The life of one worker, in ms of virtual time.

    Attributes:
        worker_id: who.
        since_ms: when it was made.
        active_ms: from when it took requests; None if it never did.
        draining_ms: from when it only finished what it had; None if it was never marked for removal.
        until_ms: when it was gone; the end of the run for those that stayed.
    """

    worker_id: int
    since_ms: float
    active_ms: float | None
    draining_ms: float | None
    until_ms: float

    @property
    def seconds(self) -> float:
        """How long it existed."""
        return (self.until_ms - self.since_ms) / 1000.0


def lifespans(changes: Sequence[FleetChange], end_ms: float) -> list[Lifespan]:
    """Lifespans of all workers named in ``changes``, by worker id; ``end_ms`` is the end of the run."""
    found: dict[int, Lifespan] = {}
    starting = 0
    for change in changes:
        at_ms, cause = change.at_ms, change.cause
        # Workers of a fleet without startup time are active when they are made.
        active_ms = None if change.starting > starting else at_ms
        starting = change.starting
        for worker_id in change.worker_ids:
            if cause.makes:
                found[worker_id] = Lifespan(worker_id, at_ms, active_ms, None, max(end_ms, at_ms))
            elif (span := found.get(worker_id)) is None:
                continue
            elif cause.ends:
                span.until_ms = at_ms
            elif cause is FleetCause.READY:
                span.active_ms = at_ms
            else:
                span.draining_ms = at_ms
    return [found[worker_id] for worker_id in sorted(found)]
