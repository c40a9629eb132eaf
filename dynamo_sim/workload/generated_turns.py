"""Requests of a generated workload as columns, made into objects when they are due."""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt

from dynamo_sim.random_streams import stream
from dynamo_sim.workload.content import merge_runs
from dynamo_sim.workload.request import Request, Runs


class GeneratedTurns:
    """Rows with their lengths, and with the part of the prompt that a group has in common.

    A prompt begins with the token of its group, repeated; the rest is a token of the request alone, repeated.

    Args:
        input_tokens, output_tokens: lengths, one a row.
        shared_prefix_ratio: share of each prompt that belongs to the group, from its beginning.
        groups: number of groups; every row draws one.
        seed: the scenario's seed.
    """

    def __init__(
        self,
        input_tokens: npt.NDArray[np.int32],
        output_tokens: npt.NDArray[np.int32],
        shared_prefix_ratio: float = 0.0,
        groups: int = 1,
        seed: int = 0,
    ) -> None:
        self._input = _compact(input_tokens)
        self._output = _compact(output_tokens)
        self._ratio = shared_prefix_ratio
        self._groups = groups
        self._group: array[int] | None = None
        if shared_prefix_ratio > 0.0 and groups > 1:
            random = stream(seed, "workload/prefix_groups")
            self._group = _compact(random.integers(0, groups, len(self._input)), "q")

    def __len__(self) -> int:
        return len(self._input)

    def runs_of(self, row: int) -> Runs | None:
        """The tokens of the group, then those of the request; None for a prompt that is unlike all others."""
        if not self._ratio:
            return None
        length = self._input[row]
        shared = round(self._ratio * length)
        group = 0 if self._group is None else self._group[row]
        return merge_runs(((group, shared), (self._groups + row, length - shared)))

    def input_tokens(self, row: int) -> int:
        """Prompt length."""
        return self._input[row]

    def output_tokens(self, row: int) -> int:
        """Tokens to generate."""
        return self._output[row]

    def planned_output(self, row: int) -> None:
        """Answers are never planned."""

    def request(self, row: int, arrival_ms: float) -> Request:
        """A new request for ``row``."""
        return Request(row, arrival_ms, self._input[row], self._output[row], self if self._ratio else None)


def _compact(values: npt.NDArray[np.integer], code: str = "i") -> array[int]:
    """The values as an array whose items are Python integers: numpy's own are slow to take one by one."""
    column: array[int] = array(code)
    column.frombytes(np.ascontiguousarray(values).tobytes())
    return column
