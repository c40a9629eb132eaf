"""Conditions on the figures of a run, as `--fail-on` takes them: ``within_sla<0.99``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}

NEEDS_SLA = ("within_sla", "within_sla_requests")
MAX_ALIKE = 8
"""Figures that are named where several contain what was written: ``ttft`` stands in eight."""

FORM = re.compile(r"\s*([A-Za-z_]\w*)\s*(<=|>=|==|!=|<|>)\s*([+-]?[\d.]+(?:[eE][+-]?\d+)?)\s*(%?)\s*")


@dataclass(frozen=True, slots=True)
class FigureCondition:
    """A figure of the summary, a comparison, and a number.

    Attributes:
        figure: name of a field of the summary.
        comparison: a key of `COMPARISONS`.
        bound: the number, in the unit of the figure.
    """

    figure: str
    comparison: str
    bound: float

    @classmethod
    def parse(cls, text: str) -> FigureCondition:
        """Read ``within_sla<0.99``, ``p99_ttft_ms > 500`` or ``within_sla < 99%``.

        Raises:
            ValueError: the text has another form.
        """
        found = FORM.fullmatch(text)
        try:
            if found is None:
                raise ValueError
            bound = float(found[3]) / (100.0 if found[4] else 1.0)
        except ValueError:
            raise ValueError(
                f"found {text!r}; must be a figure of the summary, one of {', '.join(COMPARISONS)}, and a number, "
                "as within_sla<0.99"
            ) from None
        return cls(found[1], found[2], bound)

    def holds(self, summary: Mapping[str, float]) -> bool:
        """Whether the condition holds for a run.

        Raises:
            ValueError: the summary has no such figure.
        """
        if self.figure not in summary:
            if self.figure in NEEDS_SLA:
                raise ValueError(f"{self.figure!r} needs bounds: the scenario has no sla")
            near = get_close_matches(self.figure, summary, 1)
            alike = near or [name for name in summary if self.figure in name][:MAX_ALIKE]
            one_of = "one of " if len(alike) > 1 else ""
            hint = f"; did you mean {one_of}{', '.join(map(repr, alike))}?" if alike else ""
            raise ValueError(f"the summary has no figure {self.figure!r}{hint}")
        return COMPARISONS[self.comparison](summary[self.figure], self.bound)

    def __str__(self) -> str:
        return f"{self.figure} {self.comparison} {self.bound:g}"
