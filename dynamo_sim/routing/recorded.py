"""A router whose decisions are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from dynamo_sim.records.routing import RoutingDecision
from dynamo_sim.routing.router import Dispatch, RoutedPool, Router
from dynamo_sim.workload.request import Request


def recorded(router: Router, fleet: str, decisions: list[RoutingDecision]) -> Router:
    """The same router; each of its dispatches is added to ``decisions``.

    Args:
        fleet: name of the fleet that it routes to.
    """
    if hasattr(router, "explains"):
        router.explains = True
    return cast(Router, _Recorded(router, fleet, decisions))


class _Recorded:
    """Passes everything on to a router, and notes what it answers.

    It is never oblivious: workers chosen ahead of time would be noted out of order.
    """

    is_oblivious = False

    def __init__(self, router: Router, fleet: str, decisions: list[RoutingDecision]) -> None:
        self._router = router
        self._fleet = fleet
        self._decisions = decisions
        self._waits_since_ms: dict[Request, float] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._router, name)

    @property
    def on_hold(self) -> bool:
        """Whether every request has to wait."""
        return self._router.on_hold

    @on_hold.setter
    def on_hold(self, held: bool) -> None:
        self._router.on_hold = held

    def submit(self, request: Request, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        self._waits_since_ms[request] = now_ms
        return self._noted(self._router.submit(request, pool, now_ms), now_ms)

    def prefill_completed(self, request: Request, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        return self._noted(self._router.prefill_completed(request, pool, now_ms), now_ms)

    def freed(self, request: Request, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        return self._noted(self._router.freed(request, pool, now_ms), now_ms)

    def release(self, pool: RoutedPool, now_ms: float) -> Sequence[Dispatch]:
        return self._noted(self._router.release(pool, now_ms), now_ms)

    def _noted(self, dispatches: Sequence[Dispatch], now_ms: float) -> Sequence[Dispatch]:
        for dispatch in dispatches:
            waited_ms = now_ms - self._waits_since_ms.pop(dispatch.request, now_ms)
            self._decisions.append(
                RoutingDecision(
                    now_ms,
                    self._fleet,
                    dispatch.request,
                    dispatch.worker_id,
                    waited_ms,
                    dispatch.hit_rate,
                    dispatch.terms or {},
                )
            )
        return dispatches
