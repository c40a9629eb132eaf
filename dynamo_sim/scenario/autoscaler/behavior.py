"""The `behavior` of an HPA, by keys (spec 10, 2.7)."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator

from dynamo_sim.scenario.base import NonNegative, PositiveCount, Problems, Spec

MAX_RULE_PERIOD_S = 1800
"""Of a rule of a `behavior`; Kubernetes refuses longer ones."""

MAX_STABILIZATION_S = 3600
"""Of a stabilisation window of a `behavior`; Kubernetes refuses longer ones."""


class RuleSpec(Spec):
    """At most so much change in a period."""

    type: Literal["Pods", "Percent"]
    """Workers, or percent of them."""

    value: PositiveCount
    """How many."""

    period_s: Annotated[float, Field(gt=0, le=MAX_RULE_PERIOD_S)]
    """In what time."""


class DirectionSpec(Spec):
    """How fast to scale in one direction; what is left out has the defaults of Kubernetes."""

    rules: tuple[RuleSpec, ...] | None = Field(default=None, strict=False, json_schema_extra={"minItems": 1})
    """Limits of change; null = the defaults."""

    select: Literal["Max", "Min", "Disabled"] = "Max"
    """Which rule counts."""

    stabilization_window_s: Annotated[float, Field(ge=0, le=MAX_STABILIZATION_S)] | None = None
    """Window of recommendations; null = the default."""

    tolerance: NonNegative | None = None
    """How far a ratio may be from 1; null = that of the controller."""

    @model_validator(mode="after")
    def _check_rules(self) -> DirectionSpec:
        if self.rules == ():
            raise Problems([(("rules",), "must have at least 1 item; leave it out for the defaults")])
        return self

    def over(self, default: DirectionSpec) -> DirectionSpec:
        """Itself, with the values of ``default`` in place of what is left out."""
        missing = [key for key in ("rules", "stabilization_window_s") if getattr(self, key) is None]
        return self.model_copy(update={key: getattr(default, key) for key in missing})


DEFAULT_UP = DirectionSpec(
    rules=(
        RuleSpec(type="Pods", value=4, period_s=15.0),
        RuleSpec(type="Percent", value=100, period_s=15.0),
    ),
    stabilization_window_s=0.0,
)
"""Scale-up with a `behavior` that does not say otherwise (spec 10, 2.7)."""

DEFAULT_DOWN = DirectionSpec(rules=(RuleSpec(type="Percent", value=100, period_s=15.0),))
"""Scale-down with a `behavior` that does not say otherwise; its window is that of the controller."""


class BehaviorSpec(Spec):
    """How fast to scale; a section without keys differs from none, as in Kubernetes."""

    scale_up: DirectionSpec = DirectionSpec()
    """Upwards."""

    scale_down: DirectionSpec = DirectionSpec()
    """Downwards."""

    @cached_property
    def up(self) -> DirectionSpec:
        """Scale-up with the defaults of Kubernetes in place of what is left out."""
        return self.scale_up.over(DEFAULT_UP)

    @cached_property
    def down(self) -> DirectionSpec:
        """The same for scale-down."""
        return self.scale_down.over(DEFAULT_DOWN)
