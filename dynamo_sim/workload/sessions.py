"""Conversations whose turns follow one another, in open and closed loops (`spec 08, 6, 7 and 9`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from dynamo_sim.workload.request import Request
from dynamo_sim.workload.source import WorkloadSource, end_of_pause
from dynamo_sim.workload.transcript import Transcript
from dynamo_sim.workload.turns import Turns


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions of turns, in the order of their numbers.

    Attributes:
        turns: content of the rows.
        names: name of each session.
        rows: the rows of each session, first turn first.
        delays: pause before each row, ms after the end of the turn before it.
        is_delta: whether rows hold only what a turn adds (`spec 08, 7`).
    """

    turns: Turns
    names: Sequence[str]
    rows: Sequence[Sequence[int]]
    delays: Sequence[float]
    is_delta: bool = False


class SessionDriver(WorkloadSource):
    """Hands out turns ordered by (due time, session number, turn number).

    A turn is due its delay after the end of the turn before it, whether that one was completed or rejected.

    Args:
        sessions: what is asked for, with the delays as they are to be used.
        starts_ms: when sessions begin (open loop), or None for a closed loop.
        cap: sessions active at a time in a closed loop, pauses between turns included.
        stamp_at_take: whether arrivals are stamped with the instant they are taken, as the one-worker runtime
            does in a closed loop, where it also takes at most ``cap`` less the requests in flight (`spec 01,
            13`).
    """

    def __init__(
        self,
        sessions: Sessions,
        starts_ms: Sequence[float] | None,
        cap: int | None = None,
        stamp_at_take: bool = False,
    ) -> None:
        super().__init__()
        self._turns = sessions.turns
        self._names = sessions.names
        self._rows = sessions.rows
        self._delays = sessions.delays
        self._cap = cap
        self._stamp_at_take = stamp_at_take
        self._transcripts: dict[int, Transcript] | None = {} if sessions.is_delta else None
        count = len(self._rows)
        if starts_ms is not None:
            self._due = [(start, session, 0) for session, start in enumerate(starts_ms)]
            heapify(self._due)
            self._next_session = count
        else:
            self._next_session = count if cap is None else min(cap, count)
            self._due = [(0.0, session, 0) for session in range(self._next_session)]
        self.total = self._left = sum(map(len, self._rows))
        self.hears_endings = self._next_session < count or self.total > count

    def next_ms(self) -> float | None:
        """When the next turn is due, of those that wait for nothing but time."""
        return self._due[0][0] if self._due else None

    def take_due(self, now_ms: float, in_flight: int) -> list[Request]:
        """The turns due up to now."""
        due = self._due
        if not due or due[0][0] > now_ms:
            return []
        free_slots = self._left
        if self._stamp_at_take and self._cap is not None:
            free_slots = min(free_slots, self._cap - in_flight)
        taken: list[Request] = []
        while due and due[0][0] <= now_ms and len(taken) < free_slots:
            due_ms, session, turn = heappop(due)
            taken.append(self._request(session, turn, now_ms if self._stamp_at_take else due_ms))
        self._left -= len(taken)
        return taken

    def ended(self, request: Request, now_ms: float, rejected: bool) -> None:
        """Make the next turn of the session due, or the next session in a closed loop."""
        session, turn = request.session_index, (request.turn_index or 0) + 1
        rows = self._rows[session]
        if turn < len(rows):
            if self._transcripts is not None and not rejected:
                self._transcripts[session].answered(request, request.emitted_tokens)
            due_ms = end_of_pause(now_ms, self._delays[rows[turn]], request)
            heappush(self._due, (due_ms, session, turn))
            return
        if self._transcripts is not None:
            del self._transcripts[session]
        if self._next_session < len(self._rows):
            heappush(self._due, (now_ms, self._next_session, 0))
            self._next_session += 1

    def exhausted(self) -> bool:
        """Whether every turn of every session was handed out."""
        return not self._left

    def _request(self, session: int, turn: int, arrival_ms: float) -> Request:
        rows = self._rows[session]
        request = self._turns.request(rows[turn], arrival_ms)
        request.session_id = self._names[session]
        request.session_index = session
        request.turn_index = turn
        if self._transcripts is not None:
            self._transcripts.setdefault(session, Transcript()).asked(request, is_last=turn + 1 == len(rows))
        return request
