"""How long a worker takes to start, when that is not one number."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field, model_validator

from dynamo_sim.scenario.base import NonNegative, Path, Problems, Spec

Z95 = 1.6448536269514722
"""95 % of a standard normal variable lie below this."""

PositiveSeconds = Annotated[float, Field(gt=0)]


class UniformStartup(Spec):
    """Every duration between two is equally likely."""

    min_s: NonNegative
    """Shortest."""

    max_s: NonNegative
    """Longest."""


class LognormalStartup(Spec):
    """Most starts are close to the median, some take far longer."""

    median_s: PositiveSeconds
    """Half of the starts are faster."""

    p95_s: PositiveSeconds
    """95 % of the starts are faster."""

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm."""
        return math.log(self.p95_s / self.median_s) / Z95


class Startup(Spec):
    """Duration of a startup, drawn anew for every added worker (spec 10, 9); exactly one distribution."""

    uniform: UniformStartup | None = None
    """Equally likely between two durations."""

    lognormal: LognormalStartup | None = None
    """By median and 95th percentile."""

    empirical_s: tuple[NonNegative, ...] | None = Field(
        default=None, strict=False, json_schema_extra={"minItems": 1}
    )
    """Measured durations in seconds, of which one is drawn."""

    in_order: bool = False
    """Take the measured durations one after another instead of drawing."""

    max_s: PositiveSeconds | None = None
    """Longer ones become this long."""

    @model_validator(mode="after")
    def _check(self) -> Startup:
        given = [name for name in ("uniform", "lognormal", "empirical_s") if getattr(self, name) is not None]
        found: list[tuple[Path, str]] = []
        if len(given) != 1:
            found.append(((), "needs exactly one of uniform, lognormal and empirical_s"))
        if self.empirical_s == ():
            found.append((("empirical_s",), "must have at least 1 item"))
        if self.in_order and given and self.empirical_s is None:
            found.append((("in_order",), "is possible only with empirical_s"))
        if self.uniform is not None and self.uniform.max_s < self.uniform.min_s:
            found.append((("uniform", "max_s"), f"found {self.uniform.max_s:g}; must be at least min_s"))
        if self.lognormal is not None and self.lognormal.p95_s < self.lognormal.median_s:
            found.append(
                (("lognormal", "p95_s"), f"found {self.lognormal.p95_s:g}; must be at least median_s")
            )
        if found:
            raise Problems(found)
        return self

    @property
    def expected_s(self) -> float:
        """What a planner would reckon with: the median, or the mean of measured durations."""
        if self.uniform is not None:
            usual = (self.uniform.min_s + self.uniform.max_s) / 2
        elif self.lognormal is not None:
            usual = self.lognormal.median_s
        else:
            assert self.empirical_s is not None
            usual = sum(self.empirical_s) / len(self.empirical_s)
        return usual if self.max_s is None else min(usual, self.max_s)
