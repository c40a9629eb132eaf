"""Targets by the clock (spec 10, 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from dynamo_sim.scenario.autoscaler.parts import CronExpression, Moment, PolicySpec, TimeZone, Workers
from dynamo_sim.scenario.base import NonNegative, Path, Spec, repeats


class TargetAt(Spec):
    """A target from a time on."""

    t: NonNegative
    """When, in ms of virtual time."""

    target: Workers
    """Desired workers from then on."""


class CronEntry(Spec):
    """A target while a window of the wall clock is open."""

    start: CronExpression
    """Cron expression of five fields: when the window opens."""

    end: CronExpression
    """When it closes."""

    target: Workers
    """Desired workers while it is open."""

    timezone: TimeZone = "UTC"
    """IANA name."""


class ScheduleScaling(PolicySpec):
    """Targets by the clock; where several hold, the largest counts."""

    kind: Literal["schedule"] = "schedule"
    """Kind of policy."""

    at_ms: tuple[TargetAt, ...] = Field(default=(), strict=False)
    """Targets at times of their own, applied exactly then."""

    cron: tuple[CronEntry, ...] = Field(default=(), strict=False)
    """Targets by windows of the wall clock."""

    default: Workers | None = None
    """Target where nothing else holds; null = no change."""

    start_of_run: Moment = "2025-01-06T00:00:00+00:00"
    """The wall clock at virtual time 0; UTC unless it says otherwise."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if not self.at_ms and not self.cron and self.default is None:
            yield ("at_ms",), "missing; a schedule needs at_ms, cron or default"
        for position, first in repeats(step.t for step in self.at_ms):
            earlier = self.at_ms[first]
            yield (
                ("at_ms", position, "t"),
                f"found {earlier.t:g}, the time of at_ms.{first}, whose target is {earlier.target}, too; must differ",
            )
