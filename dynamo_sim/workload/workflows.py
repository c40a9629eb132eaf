"""Requests that wait for the ends of other requests (`spec 08, 8`, path D)."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from dynamo_sim.traces.conversations import Workflow
from dynamo_sim.workload.request import Request
from dynamo_sim.workload.source import WorkloadSource, end_of_pause
from dynamo_sim.workload.turns import TraceTurns


class WorkflowDriver(WorkloadSource):
    """Hands out requests when all they wait for has ended, rejected or not, and their pause is over.

    Requests of one instant come in the order of the trace. Session and turn are for tables only.
    """

    ignores_cap = True

    def __init__(self, workflow: Workflow) -> None:
        super().__init__()
        self._turns = TraceTurns(workflow.turns)
        self._sessions = workflow.sessions
        self._wait_ms = workflow.wait_ms
        self._open = [len(waits) for waits in workflow.waits_for]
        self._latest_end = [0.0] * len(self._open)
        self._followers: dict[int, list[int]] = {}
        for row, waits in enumerate(workflow.waits_for):
            for before in waits:
                self._followers.setdefault(before, []).append(row)
        self._due = [
            (start or 0.0, row)
            for row, (start, waits) in enumerate(zip(workflow.starts, workflow.waits_for, strict=True))
            if not waits
        ]
        heapify(self._due)
        self.total = self._left = len(self._open)
        self.hears_endings = bool(self._followers)
        self._numbers: dict[str, int] = {}
        self._places: list[tuple[int, int]] = []
        turns_of: dict[str, int] = {}
        for name in self._sessions:
            turn = turns_of[name] = turns_of.get(name, -1) + 1
            self._places.append((self._numbers.setdefault(name, len(self._numbers)), turn))

    def next_ms(self) -> float | None:
        """When the next request is due, of those that wait for nothing but time."""
        return self._due[0][0] if self._due else None

    def take_due(self, now_ms: float, in_flight: int) -> list[Request]:
        """The requests due up to now, stamped with the time they were due."""
        due = self._due
        taken = []
        while due and due[0][0] <= now_ms:
            due_ms, row = heappop(due)
            request = self._turns.request(row, due_ms)
            request.session_id = self._sessions[row]
            request.session_index, request.turn_index = self._places[row]
            taken.append(request)
        self._left -= len(taken)
        return taken

    def ended(self, request: Request, now_ms: float, rejected: bool) -> None:
        """Release what waited for ``request`` last."""
        for row in self._followers.get(request.index, ()):
            self._latest_end[row] = max(self._latest_end[row], now_ms)
            self._open[row] -= 1
            if not self._open[row]:
                due_ms = end_of_pause(self._latest_end[row], self._wait_ms[row], request)
                heappush(self._due, (due_ms, row))

    def exhausted(self) -> bool:
        """Whether every request was handed out."""
        return not self._left
