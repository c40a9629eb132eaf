"""Conversations and workflows as data: what reading a trace yields, and the arithmetic on its times."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite

from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.workload.trace.fields import brief, plain_number
from dynamo_sim.workload.trace.lines import SkippedLine
from dynamo_sim.workload.turns import Turns


@dataclass(slots=True)
class Conversations:
    """Sessions of turns, numbered in order of first appearance (`spec 08, 5`).

    Attributes:
        turns: content of the rows.
        names: name of each session.
        rows: the rows of each session, first turn first.
        starts: when each session begins, ms, or None where the trace does not say.
        delays: pause before each row, ms after the end of the turn before it (0 for first turns).
        delta: whether rows hold only what a turn adds (`spec 08, 7`).
        lines: line of each row in the trace; empty where there is no file.
        file: path of the trace, for messages.
        skipped: bad lines that were left out.
    """

    turns: Turns
    names: Sequence[str]
    rows: Sequence[Sequence[int]]
    starts: Sequence[float | None]
    delays: Sequence[float]
    delta: bool = False
    lines: Sequence[int] = ()
    file: str | None = None
    skipped: list[SkippedLine] = field(default_factory=list)

    @property
    def single(self) -> bool:
        """Whether every session has exactly one turn."""
        return all(len(rows) == 1 for rows in self.rows)

    def first_line(self, session: int) -> int | None:
        """Line of the session's first row, or None."""
        return self.lines[self.rows[session][0]] if self.lines else None


@dataclass(slots=True)
class Workflow:
    """Requests that wait for other requests (`spec 08, 8`).

    Attributes:
        turns: content of the rows.
        sessions: name of the session of each row.
        waits_for: the rows each row waits for, without repetitions; must be free of cycles.
        wait_ms: pause of each row after the last end among those.
        starts: when rows without dependencies are due, ms, or None (due at 0); ignored for others.
        file: path of the trace, for messages.
        skipped: bad lines that were left out.
    """

    turns: Turns
    sessions: Sequence[str]
    waits_for: Sequence[Sequence[int]]
    wait_ms: Sequence[float]
    starts: Sequence[float | None]
    file: str | None = None
    skipped: list[SkippedLine] = field(default_factory=list)


def check_ratio(ratio: float, what: str = "ratio") -> None:
    """Raise ScenarioError unless an arrival speed-up is finite and above 0 (`spec 08, 3`)."""
    if not (isfinite(ratio) and ratio > 0):
        raise ScenarioError(
            f"{what} must be a finite positive number, got {plain_number(ratio)} (arrival_speedup_ratio)"
        )


def schedule_open(conversations: Conversations, ratio: float, skip_bad_lines: bool = False) -> array[float]:
    """Session starts of an open loop: shifted so that the first is at 0, then divided by ``ratio`` (`spec 08,
    5`).

    Delays are divided in place of the ones read. A session without a start is an error, or is emptied and
    noted as skipped where bad lines are to be skipped.

    Raises:
        ScenarioError: ``ratio`` is not finite and positive, or makes a time infinite.
        TraceError: a session has no start.
    """
    check_ratio(ratio)
    starts = conversations.starts
    if None in starts:
        if not skip_bad_lines:
            session = starts.index(None)
            raise TraceError(
                f"trace mode requires first_arrival_timestamp_ms for session {brief(conversations.names[session])} "
                "(give its first row a timestamp, or run a closed loop with concurrency)",
                conversations.file,
                conversations.first_line(session),
            )
        drop_sessions(
            conversations,
            [s for s, start in enumerate(starts) if start is None],
            "its session has no timestamp, which an open loop needs",
        )
        starts = conversations.starts
    known = array("d", (start for start in starts if start is not None))
    first = min(known, default=0.0)
    if ratio != 1.0:
        conversations.delays = sped_up(conversations.delays, ratio, "the pause before a turn")
    return sped_up((start - first for start in known), ratio, "the arrival of a session")


def sped_up(times_ms: Iterable[float], ratio: float, what: str) -> array[float]:
    """Times divided by the arrival speed-up.

    Raises:
        ScenarioError: one of them becomes infinite.
    """
    divided = array("d", (time_ms / ratio for time_ms in times_ms))
    if divided and max(divided) == inf:
        raise ScenarioError(
            f"{what} is infinitely late: the times of the workload, divided by arrival_speedup_ratio={ratio}, are "
            "too large for a clock"
        )
    return divided


def check_closed(conversations: Conversations, skip_bad_lines: bool = False) -> None:
    """Raise TraceError for a session that starts before 0: closed loops do not shift times (`spec 08, 5`)."""
    early = [s for s, start in enumerate(conversations.starts) if start is not None and start < 0.0]
    if not early:
        return
    if skip_bad_lines:
        drop_sessions(conversations, early, "its session starts before 0, which a closed loop does not allow")
        return
    session = early[0]
    raise TraceError(
        f"session {brief(conversations.names[session])} has invalid first_arrival_timestamp_ms "
        f"{plain_number(conversations.starts[session] or 0.0)} (0 or more; a closed loop shifts nothing)",
        conversations.file,
        conversations.first_line(session),
    )


def drop_sessions(conversations: Conversations, sessions: Sequence[int], reason: str) -> None:
    """Leave sessions out, noting every one of their lines as skipped."""
    dropped = set(sessions)
    for session in sessions:
        for row in conversations.rows[session]:
            line = conversations.lines[row] if conversations.lines else 0
            conversations.skipped.append(SkippedLine(conversations.file, line, reason))
    retained = [s for s in range(len(conversations.rows)) if s not in dropped]
    conversations.names = [conversations.names[s] for s in retained]
    conversations.rows = [conversations.rows[s] for s in retained]
    conversations.starts = [conversations.starts[s] for s in retained]
