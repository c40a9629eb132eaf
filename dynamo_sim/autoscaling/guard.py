"""Nothing a policy answers reaches the fleet unchecked (`spec 10, 1.5`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dynamo_sim.autoscaling.decision import Decision, is_number
from dynamo_sim.autoscaling.fleet_view import FleetView, RecordingView, View
from dynamo_sim.autoscaling.policy import adapted
from dynamo_sim.errors import SimulationError
from dynamo_sim.limits import MAX_WORKERS
from dynamo_sim.text import is_text, shown
from dynamo_sim.user_code.calls import called

ROUNDING = 1e-6
"""By so much, as a share, a sum of times may fall short of the shortest wait."""


class PolicyError(SimulationError):
    """A scaling policy failed or gave an answer that makes no sense; names the policy and the time.

    Attributes:
        policy: its name.
        at_s: virtual time in seconds.
    """

    def __init__(self, policy: str, at_s: float, what: str) -> None:
        self.policy = policy
        self.at_s = at_s
        super().__init__(f"the scaling policy {policy} at {at_s:g} s {what}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Smallest and largest fleet of a scenario; they hold for every policy.

    Raises:
        ValueError: they leave no fleet, or are no counts.
    """

    min_workers: int = 0
    max_workers: int | None = None

    def __post_init__(self) -> None:
        if self.min_workers < 0:
            raise ValueError(f"the smallest fleet has at least 0 workers, got {self.min_workers}")
        if self.max_workers is not None and self.max_workers < self.min_workers:
            raise ValueError(
                f"the largest fleet ({self.max_workers}) is below the smallest ({self.min_workers})"
            )

    def clamp(self, target: int) -> int:
        """The nearest allowed count."""
        target = max(target, self.min_workers)
        return target if self.max_workers is None else min(target, self.max_workers)


class Guarded:
    """A policy whose answers are checked, then clamped into the bounds and the budget.

    Args:
        policy: the policy; any object with a method ``decide`` will do.
        name: how messages call it.
        bounds: smallest and largest fleet.
        budget: a last clamp, such as a GPU budget shared with another fleet; None for none.
    """

    def __init__(
        self,
        policy: Any,
        name: str,
        bounds: Bounds | None = None,
        budget: Callable[[int], int] | None = None,
    ) -> None:
        self.policy = adapted(policy)
        self.name = name
        self.bounds = bounds or Bounds()
        self.budget = budget

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        """The checked and clamped decision.

        Raises:
            PolicyError: the policy raised, or its answer is not a decision, a whole number of workers from 0 to
                `MAX_WORKERS`, or None, or its next evaluation is not `Policy.min_wait_s` after this one, or what it
                reports fits no table.
        """
        seen = RecordingView(view)
        failure = partial(PolicyError, self.name, now_s)
        answer = called(failure, self.policy.decide, now_s, seen, fleet)
        if isinstance(answer, Decision):
            decision = answer if answer.values else replace(answer, values=seen.values)
        else:
            target = self._target(answer, now_s)
            decision = Decision(target, desired=target, values=seen.values)
        self._check_reported(decision, now_s)
        decision = replace(decision, next_at_s=self._next(decision.next_at_s, now_s))
        target = self._target(decision.target, now_s)
        if target is None:
            return decision
        clamped = self.bounds.clamp(target)
        reason = decision.reason
        if clamped != target:
            reason = _also(reason, "raised to min" if clamped > target else "lowered to max")
        if self.budget is not None and (within := self.budget(clamped)) != clamped:
            clamped, reason = within, _also(reason, "GPU budget")
        return replace(decision, target=clamped, reason=reason)

    def _target(self, value: Any, now_s: float) -> int | None:
        if value is None:
            return None
        if not is_number(value):
            raise PolicyError(
                self.name, now_s, f"returned {shown(value)}, which is not a number of workers{_WANTED}"
            )
        number = float(value) if isinstance(value, float | np.floating) else int(value)
        if isinstance(number, float) and (math.isnan(number) or math.isinf(number)):
            raise PolicyError(self.name, now_s, f"returned a target of {number}{_WANTED}")
        if number != int(number):
            raise PolicyError(self.name, now_s, f"returned a target of {number!r}, a fraction{_WANTED}")
        if number < 0:
            raise PolicyError(self.name, now_s, f"returned a target of {int(number)}, below 0{_WANTED}")
        if number > MAX_WORKERS:
            raise PolicyError(
                self.name,
                now_s,
                f"returned a target of {_rounded(number)} workers, more than {MAX_WORKERS}{_WANTED}{_UNIT}",
            )
        return int(number)

    def _next(self, following: Any, now_s: float) -> float | None:
        if following is None:
            return None
        if is_number(following):
            try:
                at_s = float(following)
            except OverflowError:
                at_s = math.inf
            if at_s > now_s:
                self._check_wait(at_s, now_s)
                return at_s
        raise PolicyError(
            self.name,
            now_s,
            f"wants its next evaluation at {shown(following)} s, which is no time after this one",
        )

    def _check_wait(self, at_s: float, now_s: float) -> None:
        """Refuse what would be evaluated without end at one time; policies with a list of times may have them close."""
        shortest = self.policy.min_wait_s
        if at_s - now_s < shortest * (1 - ROUNDING):
            raise PolicyError(
                self.name,
                now_s,
                f"wants its next evaluation only {at_s - now_s:g} s later (next_at_s={at_s!r}); evaluations are "
                f"at least {shortest:g} s apart",
            )

    def _check_reported(self, decision: Decision, now_s: float) -> None:
        """What is only reported must be of a kind that tables can hold."""
        values, events = decision.values, decision.events
        good = {
            "reason": decision.reason is None or is_text(decision.reason),
            "desired": decision.desired is None or _is_count(decision.desired),
            "stabilised": decision.stabilised is None or _is_count(decision.stabilised),
            "values": isinstance(values, Mapping)
            and all(is_text(name) and _is_value(value) for name, value in values.items()),
            "events": isinstance(events, tuple | list) and all(is_text(event) for event in events),
        }
        for field, is_good in good.items():
            if not is_good:
                value = getattr(decision, field)
                if field in ("desired", "stabilised") and _is_too_many(value):
                    raise PolicyError(self.name, now_s, f"returned {field}={_rounded(value)} workers{_UNIT}")
                what = f"{field} is {shown(value)}; it must be {_REPORTED[field]}"
                raise PolicyError(self.name, now_s, f"returned a decision whose {what}")


_REPORTED = {
    "reason": "a text",
    "desired": "a whole number or None",
    "stabilised": "a whole number or None",
    "values": "a mapping from names to numbers, texts or None",
    "events": "a tuple of texts",
}


def _is_count(value: Any) -> bool:
    return is_number(value) and -(2**63) <= value < 2**63 and value == int(value)


def _is_value(value: Any) -> bool:
    """Whether a cell of a table can hold it."""
    if value is None or is_text(value) or isinstance(value, bool | np.bool_):
        return True
    return is_number(value) and (isinstance(value, float | np.floating) or -(2**1023) < value < 2**1023)


def _is_too_many(value: Any) -> bool:
    return is_number(value) and 2**63 <= abs(value) < math.inf


def _rounded(count: float) -> str:
    return f"{count:g}" if abs(count) < 1e300 else f"{'-' if count < 0 else ''}more than 1e300"


_UNIT = "; is a target, or the scale of its metric, in the wrong unit?"

_WANTED = f"; a target is a whole number from 0 to {MAX_WORKERS}, or None for no change"


def _also(reason: str, more: str) -> str:
    return f"{reason}, {more}" if reason else more
