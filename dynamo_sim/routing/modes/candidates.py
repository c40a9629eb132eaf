"""The active workers side by side, as far as a decision looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.routing.router import RoutedPool

Floats = NDArray[np.float64]

Measure = Literal["in_flight", "waiting", "waiting_tokens", "kv_usage"]
"""What of a worker a router can compare: names of `WorkerView`."""

NEVER = -1


class Candidates:
    """Vectors with one element for each active worker, by ascending id.

    A decision reads what has changed, not every worker. Within the step of a worker only its KV usage changes, and it
    grows; so what was read last is a lower bound, and is brought up to date where it could decide (`settle_best`). With
    scraped metrics all but the requests in flight are those of the last scrape.

    Args:
        measures: what is compared.
        is_scraped: whether `scrape` is called now and then.

    Attributes:
        ids, id_vector: the workers.
        last_chosen: number of the last decision for each, or `NEVER`.
    """

    def __init__(self, measures: Sequence[Measure], is_scraped: bool = False) -> None:
        self.ids: list[int] = []
        self.id_vector = np.empty(0, np.int64)
        self.last_chosen: NDArray[np.int64] = np.empty(0, np.int64)
        self._live = [measure for measure in measures if measure == "in_flight" or not is_scraped]
        self._scraped = [measure for measure in measures if measure not in self._live]
        self._values: dict[str, Floats] = {measure: np.empty(0) for measure in measures}
        self._places: dict[int, int] = {}
        self._grows = "kv_usage" in self._live
        self._is_settled = np.empty(0, np.bool_)
        self._is_idle = np.empty(0, np.bool_)  # and so does not grow
        self._read_ms = 0.0
        self._decisions = 0

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, worker_id: int) -> bool:
        return worker_id in self._places

    def place_of(self, worker_id: int) -> int:
        """Where a worker stands in the vectors."""
        return self._places[worker_id]

    def joined(self, worker_id: int) -> None:
        """A worker is active from now on; it has nothing yet."""
        place = int(np.searchsorted(self.ids, worker_id))
        self.ids.insert(place, worker_id)
        self.last_chosen = np.insert(self.last_chosen, place, NEVER)
        self._is_settled = np.insert(self._is_settled, place, True)
        self._is_idle = np.insert(self._is_idle, place, True)
        for measure, values in self._values.items():
            self._values[measure] = np.insert(values, place, 0.0)
        self._number()

    def left(self, worker_id: int) -> None:
        """A worker takes no requests any more; not an error where it never did."""
        place = self._places.get(worker_id)
        if place is None:
            return
        del self.ids[place]
        self.last_chosen = np.delete(self.last_chosen, place)
        self._is_settled = np.delete(self._is_settled, place)
        self._is_idle = np.delete(self._is_idle, place)
        for measure, values in self._values.items():
            self._values[measure] = np.delete(values, place)
        self._number()

    def _number(self) -> None:
        self._places = {each: index for index, each in enumerate(self.ids)}
        self.id_vector = np.array(self.ids, np.int64)

    def scrape(self, pool: RoutedPool) -> None:
        """Read the metrics of every worker."""
        for place, worker_id in enumerate(self.ids):
            view = pool.worker(worker_id)
            for measure in self._scraped:
                self._values[measure][place] = getattr(view, measure)

    def look(self, pool: RoutedPool, now_ms: float) -> None:
        """Before a decision: read what has changed."""
        if not self._live:
            return
        if self._grows and now_ms > self._read_ms:
            self._is_settled[:] = self._is_idle
            self._read_ms = now_ms
        places = self._places
        for worker_id in pool.take_changed():
            place = places.get(worker_id)
            if place is not None:
                view = pool.worker(worker_id)
                for measure in self._live:
                    self._values[measure][place] = getattr(view, measure)
                self._is_settled[place] = True
                self._is_idle[place] = view.in_flight == 0

    def values(self, measure: Measure) -> Floats:
        """That measure of each worker, or a lower bound where it is not settled."""
        return self._values[measure]

    def terms(self, pool: RoutedPool) -> dict[str, Sequence[float]]:
        """All measures of all workers, brought up to date."""
        if self._grows:
            for place in np.flatnonzero(~self._is_settled).tolist():
                self._values["kv_usage"][place] = pool.worker(self.ids[place]).kv_usage
            self._is_settled[:] = True
        measures = {measure: tuple(values.tolist()) for measure, values in self._values.items()}
        return {"worker_ids": tuple(self.ids), **measures}

    def settle_best(self, pool: RoutedPool, fixed: Floats, weight: float) -> Floats:
        """Scores ``fixed + weight * (1 - kv_usage)``, settled as far as they could be the highest one.

        A usage that is a lower bound makes a score an upper one, so workers are brought up to date from the highest
        score on, down to where nobody can reach the best of them any more.
        """
        usage = self._values["kv_usage"]
        scores = fixed + weight * (1.0 - usage)
        if not self._grows or self._is_settled.all():
            return scores
        best = -np.inf
        is_settled, ids = self._is_settled, self.ids
        for place in np.argsort(-scores, kind="stable").tolist():
            if scores[place] < best:
                break
            if not is_settled[place]:
                is_settled[place] = True
                usage[place] = pool.worker(ids[place]).kv_usage
                scores[place] = fixed[place] + weight * (1.0 - usage[place])
            best = max(best, scores[place])
        return scores

    def take_least(self, pool: RoutedPool, measure: Measure) -> int:
        """Choose the worker with the smallest value; of several the one that was chosen longest ago."""
        values = self._values[measure]
        if measure == "kv_usage" and self._grows:
            return self.take(self._least_used(pool))
        tied = np.flatnonzero(values == values.min())
        return self.take(int(tied[0] if len(tied) == 1 else tied[self.last_chosen[tied].argmin()]))

    def _least_used(self, pool: RoutedPool) -> int:
        """Place of the worker with the smallest KV usage: lower bounds are settled from the smallest one on."""
        usage, last_chosen, is_settled = self._values["kv_usage"], self.last_chosen, self._is_settled
        best = (np.inf, 0, 0)
        for place in np.lexsort((last_chosen, usage)).tolist():
            if (usage[place], last_chosen[place]) > best[:2]:
                break
            if not is_settled[place]:
                is_settled[place] = True
                usage[place] = pool.worker(self.ids[place]).kv_usage
            best = min(best, (usage[place], last_chosen[place], place))
        return int(best[2])

    def take(self, place: int) -> int:
        """Choose the worker at a place; its id."""
        self._decisions += 1
        self.last_chosen[place] = self._decisions
        return self.ids[place]
