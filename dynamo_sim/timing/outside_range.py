"""Bookkeeping of questions that a profile was not measured for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class MeasuredRange:
    """One axis of a profile, and the questions beyond its ends.

    Attributes:
        what: the quantity in words, such as "prompt tokens".
        low, high: the ends of what was measured.
        below, above: how many questions lay outside.
        least, most: the furthest question on either side; the end of the axis if there was none.
    """

    what: str
    low: float
    high: float
    below: int = 0
    above: int = 0
    least: float = field(init=False)
    most: float = field(init=False)

    def __post_init__(self) -> None:
        self.least, self.most = self.low, self.high

    @property
    def outside(self) -> int:
        return self.below + self.above

    def note(self, value: float) -> None:
        """Count ``value`` if it lies outside."""
        if value < self.low:
            self.below += 1
            self.least = min(self.least, value)
        elif value > self.high:
            self.above += 1
            self.most = max(self.most, value)


@dataclass
class OutsideRange:
    """What was asked of a profile outside its measured points, for the report to warn about.

    Questions are counted, not passes: a stretch of passes that is cut short has asked for more than it ran.
    """

    prefill_tokens: MeasuredRange
    decode_kv_tokens: MeasuredRange
    decode_context_tokens: MeasuredRange
    prefill_questions: int = 0
    decode_questions: int = 0

    def warnings(self) -> Iterator[str]:
        """One sentence for each axis that was left."""
        for axis, questions, kind in (
            (self.prefill_tokens, self.prefill_questions, "prefill"),
            (self.decode_kv_tokens, self.decode_questions, "decode"),
            (self.decode_context_tokens, self.decode_questions, "decode"),
        ):
            reached = []
            if axis.below:
                reached.append(f"down to {axis.least:,.0f}")
            if axis.above:
                reached.append(f"up to {axis.most:,.0f}")
            if reached:
                yield (
                    f"{axis.outside:,} of {questions:,} {kind} durations lie outside the "
                    f"{axis.low:,.0f} to {axis.high:,.0f} {axis.what} of the timing profile "
                    f"({', '.join(reached)}); there its nearest segment was continued in a straight line"
                )
