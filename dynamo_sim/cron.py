"""Wall-clock windows between two cron expressions (`spec 10, 5`; KEDA's cron trigger, `spec 10, 3.1`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from dynamo_sim.text import shown

DEFAULT_START = datetime(2025, 1, 6, tzinfo=UTC)
"""The wall clock at virtual time 0 when a scenario names none: a Monday, midnight, UTC."""


def parse_start(text: str | datetime) -> datetime:
    """A wall-clock moment; without an offset it is UTC.

    Raises:
        ValueError: not ISO 8601.
    """
    moment = text if isinstance(text, datetime) else datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


_EXAMPLE = "0 8 * * 1-5"


def time_zone(name: str) -> ZoneInfo:
    """The time zone of an IANA name.

    Raises:
        ValueError: there is none.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError("must be a time zone like Europe/Berlin or UTC") from None


def check_expression(expression: str) -> None:
    """Check a cron expression.

    Raises:
        ValueError: it is malformed.
        ImportError: the package ``cronsim`` is not installed.
    """
    _firings(expression, DEFAULT_START)


@dataclass(frozen=True)
class CronWindow:
    """Open from every firing of ``start`` to the next firing of ``end``.

    Attributes:
        start, end: five-field cron expressions.
        timezone: IANA name.
        start_of_run: the wall clock at virtual time 0.

    Raises:
        ValueError: a malformed expression or an unknown time zone.
        ImportError: the package ``cronsim`` is not installed.
    """

    start: str
    end: str
    timezone: str = "UTC"
    start_of_run: datetime = DEFAULT_START
    _zone: ZoneInfo = field(init=False, repr=False, compare=False, default=ZoneInfo("UTC"))

    def __post_init__(self) -> None:
        for value, check in (
            (self.timezone, time_zone),
            (self.start, check_expression),
            (self.end, check_expression),
        ):
            try:
                check(value)
            except ValueError as error:
                raise ValueError(f"{error}, got {shown(value)}") from None
        object.__setattr__(self, "_zone", time_zone(self.timezone))

    def is_open(self, now_s: float) -> bool:
        """Whether virtual time ``now_s`` is inside: the next end comes before the next start."""
        now = self._moment(now_s)
        start, end = self._next(self.start, now), self._next(self.end, now)
        return end is not None and (start is None or end < start)

    def next_edge_s(self, now_s: float) -> float | None:
        """The first virtual time after ``now_s`` at which the window opens or closes, or None."""
        now = self._moment(now_s)
        edges = [
            edge for edge in (self._next(self.start, now), self._next(self.end, now)) if edge is not None
        ]
        return (min(edges) - self.start_of_run).total_seconds() if edges else None

    def _moment(self, now_s: float) -> datetime:
        return (self.start_of_run + timedelta(seconds=now_s)).astimezone(self._zone)

    def _next(self, expression: str, after: datetime) -> datetime | None:
        found: datetime | None = next(_firings(expression, after.astimezone(self._zone)), None)
        return found


def _firings(expression: str, after: datetime) -> Iterator[datetime]:
    cronsim = _cronsim()
    if len(expression.split()) != 5:
        raise ValueError(f"must be a cron expression of five fields like {_EXAMPLE}")
    try:
        firings: Iterator[datetime] = cronsim.CronSim(expression, after)
    except cronsim.CronSimError as error:
        raise ValueError(f"must be a cron expression like {_EXAMPLE} ({error})") from error
    return firings


def _cronsim() -> Any:
    try:
        import cronsim
    except ImportError as error:
        raise ImportError("cron windows need the package cronsim: pip install cronsim") from error
    return cronsim
