"""What requests ask for, row by row, and how one of them becomes a `Request`."""

from __future__ import annotations

from typing import Protocol

from dynamo_sim.traces.turn_table import TurnTable
from dynamo_sim.workload.content import runs_of_ids
from dynamo_sim.workload.request import Request, Runs


class Turns(Protocol):
    """Rows of a workload that can be made into requests when they are due."""

    def __len__(self) -> int: ...

    def runs_of(self, row: int) -> Runs | None:
        """The row's own tokens, or None where they are unlike everything else."""

    def input_tokens(self, row: int) -> int:
        """Number of the row's own tokens."""

    def output_tokens(self, row: int) -> int:
        """Tokens to generate."""

    def planned_output(self, row: int) -> tuple[int, ...] | None:
        """The token values that will be generated, or None."""

    def request(self, row: int, arrival_ms: float) -> Request:
        """A new request for ``row``; ``row`` is its index, its prompt is the row's own tokens."""


class TraceTurns:
    """The rows of a trace."""

    def __init__(self, table: TurnTable) -> None:
        self._table = table
        self.input_tokens = table.input_tokens
        self.output_tokens = table.output_tokens
        self.planned_output = table.planned_output

    def __len__(self) -> int:
        return len(self._table)

    def runs_of(self, row: int) -> Runs:
        """The row's own tokens as merged runs."""
        table = self._table
        return runs_of_ids(table.ids(row), table.block_tokens, table.input_tokens(row))

    def request(self, row: int, arrival_ms: float) -> Request:
        """A new request for ``row`` that arrives at ``arrival_ms``."""
        table = self._table
        request = Request(
            row,
            arrival_ms,
            table.input_tokens(row),
            table.output_tokens(row),
            self,
            table.planned_output(row),
        )
        router_fields = table.router_fields(row)
        if router_fields is not None:
            request.priority, request.strict_priority, request.policy_class = router_fields
        return request
