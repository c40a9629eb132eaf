"""Pass durations from a measured planner profile."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

from dynamo_sim.timing.durations import pass_ms
from dynamo_sim.timing.outside_range import MeasuredRange, OutsideRange
from dynamo_sim.timing.profile_grid import ProfileGrid

REMEMBERED = 1 << 16  # durations and rows of the grid; older ones are worked out again


class ProfileTiming:
    """Durations interpolated in a `ProfileGrid` (`spec 04, 4`); implements `PassTiming`.

    Nothing is clamped: outside the measured points the nearest segment continues in a straight line;
    `outside_range` counts the questions answered that way.

    Args:
        grid: the measured durations.
        speedup_ratio: divides both durations; 0 is no scaling.
        decode_speedup_ratio: divides decode on top of that; 0 takes all scaling off decode.
    """

    context_matters = True

    def __init__(
        self, grid: ProfileGrid, speedup_ratio: float = 1.0, decode_speedup_ratio: float = 1.0
    ) -> None:
        self.grid = grid
        self.prefill_ratio = speedup_ratio
        self.decode_ratio = speedup_ratio * decode_speedup_ratio
        self._isl, self._ttft_ms = grid.prefill_isl.tolist(), grid.prefill_ttft_ms.tolist()
        self._active, self._context = (
            grid.decode_active_kv_tokens.tolist(),
            grid.decode_context_length.tolist(),
        )
        self._itl_ms = grid.decode_itl.tolist()
        self.outside_range = OutsideRange(
            MeasuredRange("prompt tokens", self._isl[0], self._isl[-1]),
            MeasuredRange("KV tokens in use", self._active[0], self._active[-1]),
            MeasuredRange("tokens of mean context", self._context[0], self._context[-1]),
        )
        self._prefill = lru_cache(REMEMBERED)(self._work_out_prefill)
        self._row = lru_cache(REMEMBERED)(self._work_out_row)
        self._decode = lru_cache(REMEMBERED)(self._work_out_decode)

    def warnings(self) -> Iterator[str]:
        """Durations that are too short, and what was asked outside the measured points."""
        yield from (f"timing profile: {text}" for text in self.grid.floors())
        yield from self.outside_range.warnings()

    def prefill_ms(self, batch: int, new_tokens: int) -> float:
        """Duration of a prefill of ``batch * new_tokens`` prompt tokens, in ms."""
        tokens = batch * new_tokens
        outside = self.outside_range
        outside.prefill_questions += 1
        if not self._isl[0] <= tokens <= self._isl[-1]:
            outside.prefill_tokens.note(tokens)
        return self._prefill(tokens)

    def decode_ms(self, kv_tokens: int, batch: int, context_tokens: int) -> float:
        """A decode step in ms with ``kv_tokens`` in use and a mean length of ``context_tokens``."""
        outside = self.outside_range
        outside.decode_questions += 1
        if not self._active[0] <= kv_tokens <= self._active[-1]:
            outside.decode_kv_tokens.note(kv_tokens)
        if not self._context[0] <= context_tokens <= self._context[-1]:
            outside.decode_context_tokens.note(context_tokens)
        return self._decode(kv_tokens, context_tokens)

    def _work_out_prefill(self, tokens: int) -> float:
        at = _segment(self._isl, tokens)
        ms = _line(self._isl[at], self._ttft_ms[at], self._isl[at + 1], self._ttft_ms[at + 1], tokens)
        return pass_ms(max(ms, 0.0), self.prefill_ratio)

    def _work_out_row(self, kv_tokens: int) -> list[float]:
        """The grid at ``kv_tokens``: one duration for each context length."""
        at = _segment(self._active, kv_tokens)
        x1, x2 = self._active[at], self._active[at + 1]
        columns = zip(self._itl_ms[at], self._itl_ms[at + 1], strict=True)
        return [_line(x1, low, x2, high, kv_tokens) for low, high in columns]

    def _work_out_decode(self, kv_tokens: int, context_tokens: int) -> float:
        row = self._row(kv_tokens)
        at = _segment(self._context, context_tokens)
        ms = _line(self._context[at], row[at], self._context[at + 1], row[at + 1], context_tokens)
        return pass_ms(max(ms, 1.0), self.decode_ratio)


def _line(x1: float, y1: float, x2: float, y2: float, x: float) -> float:
    """The straight line through two points at ``x``; the order of the operations is the reference's."""
    return ((y2 - y1) / (x2 - x1)) * (x - x1) + y1


def _segment(axis: list[float], value: float) -> int:
    """The segment of ``axis`` that holds ``value``, or the one at the end that is continued to it."""
    return min(max(bisect_right(axis, value) - 1, 0), len(axis) - 2)
