"""Routers a person brings along: an object with the method ``pick``."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dynamo_sim.errors import ScenarioError, SimulationError
from dynamo_sim.routing.context import RouterContext
from dynamo_sim.routing.modes.viewing import ViewingRouter
from dynamo_sim.routing.queueing import refuse_without_workers
from dynamo_sim.routing.request_view import RequestView
from dynamo_sim.routing.router import RoutedPool
from dynamo_sim.routing.worker_view import WorkerView
from dynamo_sim.text import shown
from dynamo_sim.user_code.calls import called, raised
from dynamo_sim.user_code.loading import WantedClass, made_from_class
from dynamo_sim.workload.request import Request

if TYPE_CHECKING:
    from dynamo_sim.scenario.routing import CustomRouting

SIGNATURE = "pick(request, workers, now_ms)"
MAX_SHOWN = 8
"""So many ids of workers are listed in a message."""

_WANTED = WantedClass("router", "my_router:Sticky", ("pick",), SIGNATURE)


class UserRouter(Protocol):
    """What a user writes."""

    def pick(self, request: RequestView, workers: Sequence[WorkerView], now_ms: float) -> int:
        """The id of the worker that gets a request.

        Args:
            request: it has arrived, or has waited until a worker was active.
            workers: the active ones by ascending id, at least one.
            now_ms: virtual time in ms.
        """


class RouterError(SimulationError):
    """A user's router failed or named no worker that takes requests; names the router, the request and the time.

    Attributes:
        router: its name.
        request: name of the request it was asked about.
        at_ms: virtual time in ms.
    """

    def __init__(self, router: str, request: str, at_ms: float, what: str) -> None:
        self.router = router
        self.request = request
        self.at_ms = at_ms
        super().__init__(f"the router {router} at {at_ms:g} ms, asked about {request}, {what}")


class CustomRouter(ViewingRouter):
    """Asks a user's router, and checks its answers.

    Args:
        router: any object with the method ``pick``.
        name: how messages call it.
        scrape_interval_ms: how often the workers are scraped; None to show them as they are.
    """

    def __init__(
        self, router: UserRouter, name: str, context: RouterContext, scrape_interval_ms: float | None = None
    ) -> None:
        super().__init__(scrape_interval_ms, context.waits_for_workers)
        self._router = router
        self._name = name
        self._interner = context.interner
        self._draining: set[int] = set()

    def choose(self, request: Request, pool: RoutedPool, now_ms: float) -> int:
        """The worker that the user's router picks.

        Raises:
            SimulationError: no worker is active.
            RouterError: the router raised, or what it answers is not the id of an active worker.
        """
        ids = pool.active_worker_ids()
        refuse_without_workers(ids, self._name)
        failure = partial(RouterError, self._name, request.name, now_ms)
        answer = called(
            failure, self._router.pick, RequestView(request, self._interner), self.views(pool), now_ms
        )
        if type(answer) is int or isinstance(answer, np.integer):
            worker_id = int(answer)
            if worker_id in ids:
                return worker_id
            if worker_id in self._draining:
                why = "a worker that is draining and takes no requests"
            else:
                why = "which is the id of no active worker"
            raise failure(f"returned {shown(worker_id)}, {why}; {_possible(ids)}")
        if isinstance(answer, WorkerView):
            raise failure("returned a worker instead of its id; return worker.id")
        raise failure(f"returned {shown(answer)}, which is no id of a worker; {_possible(ids)}")

    def worker_draining(self, worker_id: int) -> None:
        """A worker gets nothing new from now on."""
        self._draining.add(worker_id)

    def worker_removed(self, worker_id: int) -> None:
        """A worker is gone."""
        super().worker_removed(worker_id)
        self._draining.discard(worker_id)


def _possible(ids: Sequence[int]) -> str:
    listed = ", ".join(map(str, ids[:MAX_SHOWN])) + (", ..." if len(ids) > MAX_SHOWN else "")
    return f"the active workers are {listed}" if len(ids) > 1 else f"the active worker is {listed}"


def load_router(
    name: str, options: dict[str, Any] | None = None, folder: str | Path | None = None
) -> UserRouter:
    """The router ``name`` stands for.

    Args:
        name: ``package.module:Class``, a class with a method ``pick``; nothing else is called.
        options: keyword arguments of the class.
        folder: searched for the module first, such as the folder of the scenario.

    Raises:
        ScenarioError: no such module or class, the options do not fit, or what comes out is no router.
    """
    return checked_router(made_from_class(name, options, folder, _WANTED), name)


def checked_router(candidate: Any, name: str | None = None) -> UserRouter:
    """A candidate, if it is a router.

    Raises:
        ScenarioError: it has no method ``pick(request, workers, now_ms)``, or is a class instead of an object.
    """
    called_name = name or type(candidate).__name__
    if inspect.isclass(candidate):
        raise ScenarioError(f"router {called_name}: is a class; give an object: {candidate.__name__}(...)")
    try:
        pick = getattr(candidate, "pick", None)
        problem = _problem(pick)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a property of theirs
        raise ScenarioError(f"router {called_name}: {raised(error)}") from error
    if problem is not None:
        raise ScenarioError(f"router {called_name}: {problem}")
    router: UserRouter = candidate
    return router


def _problem(pick: Any) -> str | None:
    if not callable(pick):
        return f"has no method {SIGNATURE}"
    if inspect.iscoroutinefunction(pick) or inspect.isgeneratorfunction(pick):
        kind = "async" if inspect.iscoroutinefunction(pick) else "a generator"
        return f"pick must be a plain function, not {kind}"
    try:
        inspect.signature(pick).bind(None, None, 0.0)
    except TypeError:
        return f"pick must take (request, workers, now_ms), found pick{inspect.signature(pick)}"
    except ValueError:  # one in C without a signature
        return None
    return None


def build_custom_router(spec: CustomRouting, context: RouterContext) -> CustomRouter:
    """The router of a section that names a class.

    Raises:
        ScenarioError: the class cannot be used.
    """
    router = load_router(spec.class_, spec.options, context.folder)
    return CustomRouter(router, spec.class_, context, spec.scrape_interval_ms)
