"""What the requests of a trace ask for, column by column."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from dynamo_sim.errors import TraceError
from dynamo_sim.limits import MAX_TRACE_IDS
from dynamo_sim.prompt_ids import TOKEN_MASK


class TurnTable:
    """Rows of a trace as compact columns.

    A trace of millions of rows must not be millions of objects, so ids lie in one array of 32-bit token
    values, and what few rows have (planned answers, priorities) lies in dictionaries. Several rows may point
    into the same ids.

    Attributes:
        block_tokens: tokens that one id stands for (`trace_block_size`).
    """

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self._values = array("I")
        self._first_value = array("q")
        self._input = array("q")
        self._output = array("q")
        self._planned: dict[int, tuple[int, ...]] = {}
        self._router_fields: dict[int, tuple[int, int, str | None]] = {}

    def __len__(self) -> int:
        return len(self._input)

    def store_ids(self, ids: Sequence[int]) -> int:
        """Append ids to the common array; returns the position of the first.

        Raises:
            TraceError: there are more of them than a trace may have.
        """
        first = len(self._values)
        if first + len(ids) > MAX_TRACE_IDS:
            raise TraceError(f"the trace has more than {MAX_TRACE_IDS:,} ids of blocks")
        try:
            self._values.extend(ids)
        except OverflowError:
            del self._values[first:]
            self._values.extend(value & TOKEN_MASK for value in ids)
        return first

    def add(
        self,
        first_value: int,
        input_tokens: int,
        output_tokens: int,
        planned_output: Sequence[int] | None = None,
        priority: int = 0,
        strict_priority: int = 0,
        policy_class: str | None = None,
    ) -> int:
        """Append a row whose content starts at position ``first_value`` of the ids; returns its number."""
        row = len(self._input)
        self._first_value.append(first_value)
        self._input.append(input_tokens)
        self._output.append(output_tokens)
        if planned_output is not None:
            self._planned[row] = tuple(planned_output)
        if priority or strict_priority or policy_class is not None:
            self._router_fields[row] = (priority, strict_priority, policy_class)
        return row

    def ids(self, row: int) -> Sequence[int]:
        """The token values of a row's ids, as many as its length needs."""
        first = self._first_value[row]
        return self._values[first : first - (-self._input[row] // self.block_tokens)].tolist()

    def input_tokens(self, row: int) -> int:
        """Number of the row's own tokens."""
        return self._input[row]

    def output_tokens(self, row: int) -> int:
        """Tokens to generate."""
        return self._output[row]

    def planned_output(self, row: int) -> tuple[int, ...] | None:
        """The token values the trace says will be generated, or None."""
        return self._planned.get(row)

    def router_fields(self, row: int) -> tuple[int, int, str | None] | None:
        """Priority, strict priority and policy class, where one of them is given."""
        return self._router_fields.get(row)
