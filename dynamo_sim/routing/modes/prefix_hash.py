"""Consistent hashing of the beginning of a prompt, with bounded loads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dynamo_sim.routing.context import RouterContext
from dynamo_sim.routing.modes.comparing import ComparingRouter
from dynamo_sim.routing.modes.hash_ring import HashRing
from dynamo_sim.routing.router import RoutedPool
from dynamo_sim.workload.request import Request

if TYPE_CHECKING:
    from dynamo_sim.scenario.routing import PrefixHashRouting


class PrefixHash(ComparingRouter):
    """Requests whose prompts begin alike go to the same worker, as long as it is not much fuller than the others.

    The bound is that of consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam, 2018): with this
    request a worker may have `ceil(load_factor * requests in flight / workers)` of them. A prompt without a whole block
    that others could share goes to the worker with the fewest requests in flight.
    """

    def __init__(self, spec: PrefixHashRouting, context: RouterContext) -> None:
        super().__init__(spec.mode, ["in_flight"], waits_for_workers=context.waits_for_workers)
        self._interner = context.interner
        self._prefix_blocks = spec.prefix_blocks
        self._load_factor = spec.load_factor
        self._ring = HashRing(spec.points_per_worker)

    def choose_among(self, request: Request, pool: RoutedPool) -> int:
        """The first worker behind the prompt's beginning that has room."""
        candidates = self.candidates
        request.block_names = names = self._interner.names_of(request)
        blocks = min(len(names), request.input_tokens // self._interner.block_size, self._prefix_blocks)
        if not blocks:
            return candidates.take_least(pool, "in_flight")
        in_flight = candidates.values("in_flight")
        room = math.ceil(self._load_factor * (in_flight.sum() + 1) / len(candidates))
        for worker_id in self._ring.owners(f"prefix {names[blocks - 1]}"):
            place = candidates.place_of(worker_id)
            if in_flight[place] < room:
                return candidates.take(place)
        raise AssertionError("the bounds of all workers add up to more than all requests")

    def worker_joined(self, worker_id: int) -> None:
        """A worker takes over its share of the ring."""
        super().worker_joined(worker_id)
        self._ring.add(worker_id)

    def worker_draining(self, worker_id: int) -> None:
        """The keys of a worker go to those behind it."""
        super().worker_draining(worker_id)
        self._ring.remove(worker_id)

    def worker_removed(self, worker_id: int) -> None:
        """It is on the ring no more."""
        super().worker_removed(worker_id)
        self._ring.remove(worker_id)
