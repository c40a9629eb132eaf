"""Ties between workers: counting them, and drawing as the reference has drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from dynamo_sim.routing.kv import router as module
from dynamo_sim.routing.kv.queue import Arrival
from dynamo_sim.workload.request import Request

Place = tuple[float, int]
"""A request by its arrival in ms and its prompt length."""


class Draws:
    """What was drawn in a run.

    Attributes:
        ties: decisions in which several workers cost the least.
        wrong: requests that the reference gave to a worker that is not among the cheapest here.
    """

    def __init__(self, chosen: dict[Place, int]) -> None:
        self.ties = 0
        self.wrong: list[Request] = []
        self._chosen = chosen

    def choose(self, eligible: tuple[int, ...], request: Request, costs: Any) -> int:
        """The place of the chosen worker."""
        cheapest = np.flatnonzero(costs == costs.min())
        self.ties += len(cheapest) > 1
        worker = self._chosen.get((round(request.arrival_ms, 6), request.input_tokens))
        if worker is None:
            return int(cheapest[0])
        place = eligible.index(worker)
        if place not in cheapest:
            self.wrong.append(request)
        return place


@contextmanager
def drawing_as(chosen: dict[Place, int] | None = None) -> Iterator[Draws]:
    """Within it routers at temperature 0 draw the workers ``chosen`` by the reference, else the lowest id."""
    draws = Draws(chosen or {})
    dispatch = module.KvRouter._dispatch

    def follow(router: Any, arrival: Arrival) -> Any:
        def choose(costs: Any, *_: Any) -> int:
            return draws.choose(router._eligible, arrival.request, costs)

        with mock.patch.object(module, "choose", choose):
            return dispatch(router, arrival)

    with mock.patch.object(module.KvRouter, "_dispatch", follow):
        yield draws


def workers_of(expected: dict[str, Any], requests: int) -> dict[Place, int] | None:
    """Which worker the reference gave each request; None where its rows do not tell."""
    rows = expected.get("requests") or []
    places = {
        (round(row["arrival_time_ms"], 6), row["input_length"]): row["decode_worker_idx"] for row in rows
    }
    tells_all = 0 < len(places) == len(rows) == requests and None not in places.values()
    return places if tells_all else None
