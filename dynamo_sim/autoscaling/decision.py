"""What a policy is, and what it answers (`spec 10, 1`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from dynamo_sim.autoscaling.fleet_view import FleetView, View

_NO_VALUES: Mapping[str, float | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer of a policy to one look.

    Attributes:
        target: how many workers there should be (active and starting together); None for no opinion.
        reason: one word or a few, for the table of decisions.
        proposal: what the metrics alone asked for, where the policy tells.
        stabilised: the proposal after windows and cooldowns, before limits, where the policy tells.
        values: the numbers it looked at, by a name of the policy's choice.
        next_at_s: when to ask again, in seconds; None for the period of the loop, infinity for never.
        hold: whether requests wait in front of the fleet although it has workers (an inactive Knative
            revision).
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


class Policy(Protocol):
    """The one method a policy needs; any object that has it will do.

    A policy may say more about itself by attributes, all optional:

    * ``reads``: the `MetricQuery` objects (or names of metrics) it asks for. What nobody reads is not collected; a
      policy without it may ask for anything.
    * ``direct = True``: its view shows exact values of this very moment, not scraped ones.
    * ``needs_passes = True``: `View.bridge` has forward-pass snapshots and traffic for it.
    * ``period_s``: seconds between two looks. ``first_at_s``: time of the first look; without it, one period.
    * ``loops``: several `Loop` objects instead of one, for a controller that is made of several.
    """

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision | int | None:
        """Look, and say how many workers there should be.

        Args:
            now_s: virtual time in seconds since the start of the run.
            view: the metrics as they are visible now.
            fleet: the workers and their phases.

        Returns:
            A `Decision`, or just the target, or None for no change.
        """


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One look of a loop, and what came of it (times in seconds).

    Attributes:
        at_s: when.
        loop: which loop looked.
        policy: name of its policy.
        current: effective workers before.
        proposal, stabilised: see `Decision`.
        target: what was asked of the fleet, after bounds and budget; equal to ``current`` when nothing was.
        reason: the policy's word, or what the bounds did to it.
        values: the numbers it looked at.
        added, cancelled, marked: ids of new workers, of startups called off, of workers told to leave.
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
    added: tuple[int, ...] = ()
    cancelled: tuple[int, ...] = ()
    marked: tuple[int, ...] = ()
    hold: bool = False
    events: tuple[str, ...] = ()

    def as_row(self) -> dict[str, Any]:
        """A flat row for a table; lists of ids become tuples, values one column each as ``value:NAME``."""
        row: dict[str, Any] = {name: getattr(self, name) for name in _ROW}
        row.update({f"value:{name}": value for name, value in self.values.items()})
        return row


_ROW = (
    "at_s",
    "loop",
    "policy",
    "current",
    "proposal",
    "stabilised",
    "target",
    "reason",
    "added",
    "cancelled",
    "marked",
    "hold",
    "events",
)
