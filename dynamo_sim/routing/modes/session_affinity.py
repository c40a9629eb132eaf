"""The turns of a session go to one worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_sim.routing.context import RouterContext
from dynamo_sim.routing.modes.comparing import ComparingRouter
from dynamo_sim.routing.modes.hash_ring import HashRing
from dynamo_sim.routing.router import RoutedPool
from dynamo_sim.workload.request import Request

if TYPE_CHECKING:
    from dynamo_sim.scenario.routing import SessionAffinityRouting


class SessionAffinity(ComparingRouter):
    """Sends the turns of a session to the worker that its name hashes to, or to the one that had the turn before.

    A request without a session goes to the worker with the fewest requests in flight, and so does, unless names are
    hashed, a session that is new or whose worker takes nothing any more.
    """

    def __init__(self, spec: SessionAffinityRouting, context: RouterContext) -> None:
        super().__init__(spec.mode, ["in_flight"], waits_for_workers=context.waits_for_workers)
        self._ring = HashRing(spec.points_per_worker) if spec.by == "hash" else None
        self._worker_of: dict[str, int] = {}

    def choose_among(self, request: Request, pool: RoutedPool) -> int:
        """The worker of the session."""
        candidates, session = self.candidates, request.session_id
        if session is None:
            return candidates.take_least(pool, "in_flight")
        if self._ring is not None:
            return candidates.take(candidates.place_of(next(self._ring.owners(f"session {session}"))))
        known = self._worker_of.get(session)
        if known is not None and known in candidates:
            return candidates.take(candidates.place_of(known))
        worker_id = self._worker_of[session] = candidates.take_least(pool, "in_flight")
        return worker_id

    def worker_joined(self, worker_id: int) -> None:
        """A worker takes over its share of the ring."""
        super().worker_joined(worker_id)
        if self._ring is not None:
            self._ring.add(worker_id)

    def worker_draining(self, worker_id: int) -> None:
        """The sessions of a worker go elsewhere."""
        super().worker_draining(worker_id)
        if self._ring is not None:
            self._ring.remove(worker_id)

    def worker_removed(self, worker_id: int) -> None:
        """It is on the ring no more."""
        super().worker_removed(worker_id)
        if self._ring is not None:
            self._ring.remove(worker_id)
