"""What a policy answers, and what came of it (`spec 10, 1`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from types import MappingProxyType
from typing import Any

import numpy as np

from dynamo_sim.fleet.fleet import TargetEffect

_NO_VALUES: Mapping[str, float | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer of a policy to one evaluation.

    Attributes:
        target: how many workers there should be (active and starting together); None for no opinion.
        reason: one word or a few, for the table of decisions.
        desired: what the metrics alone ask for, where the policy says. ``proposal`` is its earlier name.
        stabilised: that after windows and cooldowns, before limits, where the policy says.
        values: the numbers it read, by a name of the policy's choice (see `Policy.readings`).
        next_at_s: time of the next evaluation, in seconds; None for the period of the loop, infinity for never.
        hold: whether requests wait in front of the fleet although it has workers.
        events: what happened on the way, one line each.
    """

    target: int | None
    reason: str = ""
    desired: int | None = None
    stabilised: int | None = None
    values: Mapping[str, float | None] = field(default_factory=lambda: _NO_VALUES)
    next_at_s: float | None = None
    hold: bool = False
    events: tuple[str, ...] = ()

    @property
    def proposal(self) -> int | None:
        """What `desired` was called before."""
        _warn_of_proposal()
        return self.desired


def _warn_of_proposal() -> None:
    warnings.warn("proposal of a Decision is now called desired", DeprecationWarning, stacklevel=3)


def _taking_proposal(init: Callable[..., None]) -> Callable[..., None]:
    """The constructor of `Decision`, which also takes ``desired`` by its earlier name."""

    @wraps(init)
    def __init__(self: Decision, *args: Any, **keys: Any) -> None:
        if "proposal" in keys:
            _warn_of_proposal()
            keys["desired"] = keys.pop("proposal")
        init(self, *args, **keys)

    return __init__


Decision.__init__ = _taking_proposal(Decision.__init__)  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One evaluation of a loop, and what came of it (times in seconds).

    Attributes:
        at_s: when.
        loop: which loop.
        policy: name of its policy.
        current: effective workers before.
        desired, stabilised: see `Decision`.
        target: what was asked of the fleet, after bounds and budget; equal to ``current`` when nothing was.
        reason: the policy's word, or what the bounds did to it.
        values: the numbers it read.
        effect: ids of the workers that the target added, cancelled or marked; None when nothing was asked.
        hold: whether requests are held in front of the fleet.
        events: what happened on the way.
    """

    at_s: float
    loop: str
    policy: str
    current: int
    target: int
    reason: str
    desired: int | None = None
    stabilised: int | None = None
    values: Mapping[str, float | None] = field(default_factory=lambda: _NO_VALUES)
    effect: TargetEffect | None = None
    hold: bool = False
    events: tuple[str, ...] = ()

    def as_row(self) -> dict[str, Any]:
        """A flat row for a table; lists of ids become tuples, values one column each as ``value:NAME``."""
        row: dict[str, Any] = {name: getattr(self, name) for name in _BEFORE_EFFECT}
        row |= {name: () if self.effect is None else getattr(self.effect, name) for name in _EFFECT}
        row |= {"hold": self.hold, "events": self.events}
        row.update({f"value:{name}": value for name, value in self.values.items()})
        return row


_BEFORE_EFFECT = ("at_s", "loop", "policy", "current", "desired", "stabilised", "target", "reason")
_EFFECT = ("added", "cancelled", "marked")


def is_number(value: Any) -> bool:
    """Whether it is a number, of Python or numpy; True is none."""
    is_truth = isinstance(value, bool | np.bool_)
    return not is_truth and isinstance(value, int | float | np.integer | np.floating)
