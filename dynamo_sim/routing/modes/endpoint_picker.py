"""The weighted scorers of the endpoint picker of a Kubernetes inference gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.random_streams import stream
from dynamo_sim.routing.context import RouterContext
from dynamo_sim.routing.modes.comparing import ComparingRouter
from dynamo_sim.routing.modes.prefix_index import EventPrefixIndex, PrefixIndex, RoutedPrefixIndex
from dynamo_sim.routing.router import RoutedPool
from dynamo_sim.workload.request import Request

if TYPE_CHECKING:
    from dynamo_sim.scenario.routing import EndpointPickerRouting

Scores = NDArray[np.float64]


class EndpointPicker(ComparingRouter):
    """Sends each request to the worker with the highest score; equal ones are drawn from.

    A score is the weighted sum of three scores from 0 to 1: how short the queue is among the active workers, how empty
    the KV cache, and how much of the prompt's beginning is taken to be cached.
    """

    def __init__(self, spec: EndpointPickerRouting, context: RouterContext) -> None:
        super().__init__(
            spec.mode, ["waiting", "kv_usage"], spec.scrape_interval_ms, context.waits_for_workers
        )
        self._weights = spec.weights
        self._max_blocks = spec.max_prefix_blocks
        self._interner = context.interner
        self._random = stream(context.seed, f"{context.stream}/endpoint_picker")
        self._prefixes: PrefixIndex = (
            EventPrefixIndex()
            if spec.prefix_index == "kv_events"
            else RoutedPrefixIndex(spec.lru_capacity_blocks)
        )
        self.reads_kv_events = spec.prefix_index == "kv_events"

    def choose_among(self, request: Request, pool: RoutedPool) -> int:
        """The worker with the highest score."""
        candidates, weights = self.candidates, self._weights
        blocks = self._blocks(request)
        prefix_scores = self._prefix_scores(blocks, pool)
        fixed = weights.queue * queue_scores(candidates.values("waiting"))
        fixed = fixed + weights.prefix_cache * prefix_scores
        scores = candidates.settle_best(pool, fixed, weights.kv_cache_utilization)
        best = np.flatnonzero(scores == scores.max())
        place = int(best[0] if len(best) == 1 else best[self._random.integers(len(best))])
        worker_id = candidates.take(place)
        prompt_blocks = -(-request.input_tokens // self._interner.block_size)
        self.hit_rate = float(prefix_scores[place]) * len(blocks) / prompt_blocks
        if self.terms is not None:
            more = {"score": tuple(scores.tolist()), "prefix_score": tuple(prefix_scores.tolist())}
            self.terms = {**self.terms, **more}
        self._prefixes.routed(worker_id, blocks)
        return worker_id

    def _blocks(self, request: Request) -> list[int]:
        request.block_names = names = self._interner.names_of(request)
        whole = request.input_tokens // self._interner.block_size
        return list(names[: min(whole, self._max_blocks)])

    def _prefix_scores(self, blocks: list[int], pool: RoutedPool) -> Scores:
        """Share of the prompt's first blocks that each worker is taken to have cached; 0 for a prompt without."""
        if not blocks:
            return np.zeros(len(self.candidates))
        depths = self._prefixes.depths(blocks, pool)
        return np.asarray(depths[self.candidates.id_vector] / len(blocks))

    def worker_joined(self, worker_id: int) -> None:
        """A worker may be scored from now on."""
        super().worker_joined(worker_id)
        self._prefixes.joined(worker_id)

    def worker_draining(self, worker_id: int) -> None:
        """What was cached at a worker does not matter any more."""
        super().worker_draining(worker_id)
        self._prefixes.left(worker_id)

    def worker_removed(self, worker_id: int) -> None:
        """It was draining before, or never joined."""
        super().worker_removed(worker_id)
        self._prefixes.left(worker_id)


def queue_scores(waiting: Scores) -> Scores:
    """1 for the shortest queue, 0 for the longest one, in between by length; 1 for all where they are equal."""
    shortest, longest = waiting.min(), waiting.max()
    if shortest == longest:
        return np.ones(len(waiting))
    return np.asarray((longest - waiting) / (longest - shortest))
