"""What a policy answers, and what came of it (`spec 10, 1`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from dynamo_sim.serving.controller import TargetEffect

_NO_VALUES: Mapping[str, float | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer of a policy to one evaluation.

    Attributes:
        target: how many workers there should be (active and starting together); None for no opinion.
        reason: one word or a few, for the table of decisions.
        proposal: what the metrics alone asked for, where the policy tells.
        stabilised: the proposal after windows and cooldowns, before limits, where the policy tells.
        values: the numbers it read, by a name of the policy's choice (see `Policy.readings`).
        next_at_s: time of the next evaluation, in seconds; None for the period of the loop, infinity for never.
        hold: whether requests wait in front of the fleet although it has workers.
        events: what happened on the way, one line each.
    """

    target: int | None
    reason: str = ""
    proposal: int | None = None
    stabilised: int | None = None
    values: Mapping[str, float | None] = field(default_factory=lambda: _NO_VALUES)
    next_at_s: float | None = None
    hold: bool = False
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One evaluation of a loop, and what came of it (times in seconds).

    Attributes:
        at_s: when.
        loop: which loop.
        policy: name of its policy.
        current: effective workers before.
        proposal, stabilised: see `Decision`.
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
    proposal: int | None = None
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


_BEFORE_EFFECT = ("at_s", "loop", "policy", "current", "proposal", "stabilised", "target", "reason")
_EFFECT = ("added", "cancelled", "marked")


def is_number(value: Any) -> bool:
    """Whether it is a number, of Python or numpy; True is none."""
    is_truth = isinstance(value, bool | np.bool_)
    return not is_truth and isinstance(value, int | float | np.integer | np.floating)
