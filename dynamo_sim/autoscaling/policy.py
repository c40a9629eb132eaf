"""What a policy is, and when it is evaluated (`spec 10, 1`)."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dynamo_sim.autoscaling.decision import Decision, is_number
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.records.readings import Reading
from dynamo_sim.text import shown

MIN_PERIOD_S = 0.01
"""Evaluations closer together than this are a mistake in the unit."""

KEDA_OPERATOR, HPA, KNATIVE, ANY = range(4)
"""Order of loops that are due together."""


class Policy:
    """Decides how many workers there should be.

    Only `decide` is needed, and a class need not inherit from this one: any object with that method, or with ``loops``,
    is taken for a policy, and may have any of the attributes.

    Attributes:
        reads: the queries (or names of metrics) it asks for. What nobody reads is not collected; None stands for
            anything.
        direct: whether its view shows exact values of this very moment, not scraped ones.
        needs_passes: whether `View.bridge` has forward-pass snapshots and traffic for it.
        period_s: seconds between two evaluations; None for the period of the scenario.
        first_at_s: time of the first evaluation; None for one period.
        min_wait_s: the shortest time to the evaluation that a decision asks for by ``next_at_s``.
        order: place among loops that are due together.
        is_recorded: whether its evaluations are decisions, with a row each; a loop that only collects has none.
        may_empty_fleet: whether it can ask for 0 workers and then has only its metrics to come back by.
        loops: several loops instead of one, for a controller that is made of several; it needs no `decide` then.
    """

    reads: Sequence[MetricQuery | str] | None = None
    direct: bool = False
    needs_passes: bool = False
    period_s: float | None = None
    first_at_s: float | None = None
    min_wait_s: float = MIN_PERIOD_S
    order: int = ANY
    is_recorded: bool = True
    may_empty_fleet: bool = True
    loops: Sequence[Loop] | None = None

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision | int | None:
        """Evaluate, and say how many workers there should be.

        Args:
            now_s: virtual time in seconds since the start of the run.
            view: the metrics as they are visible now.
            fleet: the workers and their phases.

        Returns:
            A `Decision`, or just the target, or None for no change.
        """
        raise NotImplementedError("a policy has a method decide(now_s, view, fleet), or loops")

    def request_waits(self, now_s: float) -> float | None:
        """A request waits in front of a fleet without workers: the time of an evaluation because of it, or None."""
        return None

    def readings(self) -> Sequence[Reading] | None:
        """Units and thresholds of the values in its decisions; None where it does not say, and all are drawn."""
        return None

    def caveats(self, facts: FleetFacts) -> Iterable[str]:
        """What has to be said about it before a run of such a fleet, one line each: targets that are never reached."""
        return ()

    @property
    def queries(self) -> tuple[MetricQuery, ...] | None:
        """What it reads, as queries.

        Raises:
            ValueError: ``reads`` is no list of queries and names of metrics.
        """
        reads = self.reads
        if reads is None:
            return None
        if isinstance(reads, str):
            raise ValueError(f"reads: is a list of metrics, got {shown(reads)}; write ({shown(reads)},)")
        if not isinstance(reads, list | tuple | set | frozenset):
            raise ValueError(f"reads: is a list of metrics, got {shown(reads)}")
        for query in reads:
            if not isinstance(query, MetricQuery | str):
                raise ValueError(
                    f"reads: has names of metrics and MetricQuery objects only, got {shown(query)}"
                )
        try:
            return tuple(MetricQuery.of(query) for query in reads)
        except ValueError as error:
            raise ValueError(f"reads: {error}") from None


class ForeignPolicy(Policy):
    """An object that does not inherit from `Policy`, with its attributes, or the defaults.

    Attributes:
        inner: the object.
    """

    ATTRIBUTES = ("reads", "direct", "needs_passes", "period_s", "first_at_s", "min_wait_s", "order", "loops")

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        for name in self.ATTRIBUTES:
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision | int | None:
        answer: Decision | int | None = self.inner.decide(now_s, view, fleet)
        return answer


def adapted(policy: Any) -> Policy:
    """``policy`` itself, or a `ForeignPolicy` of it; nothing is checked."""
    return policy if isinstance(policy, Policy) else ForeignPolicy(policy)


@dataclass(frozen=True)
class Loop:
    """One policy and when it is evaluated (times in seconds).

    Evaluations happen at ``first_at_s + k * period_s``, computed from k, never added up; a decision may name another
    time.

    Attributes:
        name: for the records.
        policy: who decides; any object with a method ``decide`` becomes a `Policy`.
        period_s: seconds between evaluations.
        first_at_s: the first evaluation; None for one period.
        order: place among loops due at the same time.
    """

    name: str
    policy: Policy
    period_s: float
    first_at_s: float | None = None
    order: int = ANY

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", adapted(self.policy))
        if not _is_at_least(self.period_s, MIN_PERIOD_S):
            raise ValueError(
                f"period_s: a period is longer than 0 s (at least {MIN_PERIOD_S:g} s), got {shown(self.period_s)}"
            )
        if self.first_at_s is not None and not _is_at_least(self.first_at_s, 0.0):
            raise ValueError(
                f"first_at_s: the first evaluation is at 0 s or later, got {shown(self.first_at_s)}"
            )
        if not isinstance(self.order, int):
            raise ValueError(f"order: is a whole number, got {shown(self.order)}")

    @property
    def start_s(self) -> float:
        """Time of the first evaluation."""
        return self.period_s if self.first_at_s is None else self.first_at_s


def loops_of(policy: Any, name: str, period_s: float = 15.0, first_at_s: float | None = None) -> list[Loop]:
    """The loops of a policy, in the order in which they run when they are due together.

    Args:
        policy: any policy; one with ``loops`` brings its own.
        name: of the loop, when there is one.
        period_s, first_at_s: for a policy that does not say ``period_s`` or ``first_at_s`` itself.

    Raises:
        ValueError: what the policy says of its times makes no sense.
    """
    known = adapted(policy)
    own = known.loops
    if own is not None:
        if not isinstance(own, list | tuple) or not all(isinstance(loop, Loop) for loop in own):
            raise ValueError(f"loops: is a list of Loop objects, got {shown(own)}")
        if not own:
            raise ValueError("loops: is empty, so nothing would ever be evaluated")
        return sorted(own, key=lambda loop: loop.order)
    period = period_s if known.period_s is None else known.period_s
    first = first_at_s if known.first_at_s is None else known.first_at_s
    return [Loop(name, known, period, first, known.order)]


def reads_of(policy: Any) -> tuple[MetricQuery, ...] | None:
    """The queries any policy asks for; None for "anything".

    Raises:
        ValueError: see `Policy.queries`.
    """
    return adapted(policy).queries


def unreachable_targets(policy: Any, facts: FleetFacts | None = None) -> list[str]:
    """What has to be said about any policy before a run of such a fleet (`Policy.caveats`)."""
    return list(adapted(policy).caveats(facts or FleetFacts()))


def check_decide(policy: Policy) -> None:
    """Refuse a policy whose method ``decide`` cannot be called as it will be.

    Raises:
        ValueError: says what is wrong with it.
    """
    candidate = policy.inner if isinstance(policy, ForeignPolicy) else policy
    decide = getattr(candidate, "decide", None)
    if not callable(decide):
        raise ValueError("has no method decide(now_s, view, fleet)")
    if inspect.iscoroutinefunction(decide):
        raise ValueError("decide must be a plain function, not async")
    try:
        inspect.signature(decide).bind(0.0, None, None)
    except TypeError as error:
        raise ValueError(f"decide must take (now_s, view, fleet): {error}") from error
    except ValueError:  # no signature to be had
        pass


def _is_at_least(value: Any, least: float) -> bool:
    """Whether it is a number from ``least`` that times can be reckoned with."""
    try:
        return is_number(value) and float(value) >= least
    except OverflowError:
        return False
