"""Conversations and workflows as data: what reading a trace yields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from dynamo_sim.traces.lines import SkippedLine
from dynamo_sim.traces.turn_table import TurnTable


@dataclass(slots=True)
class Conversations:
    """Sessions of turns, numbered in order of first appearance (`spec 08, 5`).

    Attributes:
        turns: content of the rows.
        names: name of each session.
        rows: the rows of each session, first turn first.
        starts: when each session begins, ms, or None where the trace does not say.
        delays: pause before each row, ms after the end of the turn before it (0 for first turns).
        is_delta: whether rows hold only what a turn adds (`spec 08, 7`).
        lines: line of each row in the trace; empty where there is no file.
        file: path of the trace, for messages.
        skipped: bad lines that were left out.
    """

    turns: TurnTable
    names: Sequence[str]
    rows: Sequence[Sequence[int]]
    starts: Sequence[float | None]
    delays: Sequence[float]
    is_delta: bool = False
    lines: Sequence[int] = ()
    file: str | None = None
    skipped: list[SkippedLine] = field(default_factory=list)

    is_workflow: ClassVar[bool] = False
    """Whether requests wait for requests of other sessions."""

    def known_starts(self) -> list[float]:
        """The arrivals that the trace says, ms: those of first turns."""
        return [start for start in self.starts if start is not None]

    def session_sizes(self) -> list[int]:
        """Number of turns of each session."""
        return [len(rows) for rows in self.rows]

    @property
    def single(self) -> bool:
        """Whether every session has exactly one turn."""
        return all(len(rows) == 1 for rows in self.rows)

    def first_line(self, session: int) -> int | None:
        """Line of the session's first row, or None."""
        return self.lines[self.rows[session][0]] if self.lines else None

    def drop(self, sessions: Sequence[int], reason: str) -> None:
        """Leave sessions out, noting every one of their lines as skipped."""
        dropped = set(sessions)
        for session in sessions:
            for row in self.rows[session]:
                line = self.lines[row] if self.lines else 0
                self.skipped.append(SkippedLine(self.file, line, reason))
        self.keep([session for session in range(len(self.rows)) if session not in dropped])

    def keep(self, sessions: Sequence[int]) -> None:
        """Let the trace consist of these sessions, in this order."""
        self.names = [self.names[session] for session in sessions]
        self.rows = [self.rows[session] for session in sessions]
        self.starts = [self.starts[session] for session in sessions]


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

    turns: TurnTable
    sessions: Sequence[str]
    waits_for: Sequence[Sequence[int]]
    wait_ms: Sequence[float]
    starts: Sequence[float | None]
    file: str | None = None
    skipped: list[SkippedLine] = field(default_factory=list)

    is_workflow: ClassVar[bool] = True
    """Whether requests wait for requests of other sessions."""

    def known_starts(self) -> list[float]:
        """The arrivals that the trace says, ms: those of requests that wait for nothing."""
        return [start or 0.0 for start, waits in zip(self.starts, self.waits_for, strict=True) if not waits]

    def session_sizes(self) -> list[int]:
        """Number of requests of each session, in the order of first appearance."""
        return list(Counter(self.sessions).values())
