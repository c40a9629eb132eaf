"""How long the prompts and answers of a generated workload are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from dynamo_sim.limits import MAX_TOKENS
from dynamo_sim.scenario.base import Path, Problems, Spec
from dynamo_sim.scenario.files import existing_path

Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
TokenNumber = Annotated[float, Field(gt=0, le=MAX_TOKENS)]


class LognormalLengths(Spec):
    """Lengths whose logarithm is normal: many short ones, few very long ones."""

    median: TokenNumber
    """Half of the lengths are below this many tokens."""

    p95: TokenNumber | None = None
    """95 % of the lengths are below this many tokens; instead of sigma."""

    sigma: Annotated[float, Field(ge=0, le=10)] | None = None
    """Standard deviation of the logarithm; instead of p95."""

    min: Tokens = 1
    """Shorter ones become this long."""

    max: Tokens | None = None
    """Longer ones become this short; null = no bound."""

    @model_validator(mode="after")
    def _check(self) -> LognormalLengths:
        found = list(self._conflicts())
        if found:
            raise Problems(found)
        return self

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if self.p95 is None and self.sigma is None:
            yield ("p95",), "missing; a lognormal needs p95, or sigma"
        elif self.p95 is not None and self.sigma is not None:
            yield ("sigma",), "cannot be given together with p95"
        elif self.p95 is not None and self.p95 < self.median:
            yield ("p95",), f"found {self.p95:g}; must be at least the median, which is {self.median:g}"
        if self.max is not None and self.max < self.min:
            yield ("max",), f"found {self.max}; must be at least min, which is {self.min}"


class UniformLengths(Spec):
    """All whole numbers of a range, equally often."""

    min: Tokens
    """The shortest length."""

    max: Tokens
    """The longest length."""

    @model_validator(mode="after")
    def _check(self) -> UniformLengths:
        if self.max < self.min:
            raise Problems([(("max",), f"found {self.max}; must be at least min, which is {self.min}")])
        return self


def _checked_path(value: Any, info: ValidationInfo) -> Any:
    return existing_path(value, info.context) if isinstance(value, str) else value


class EmpiricalLengths(Spec):
    """Lengths measured elsewhere: a column of a CSV file.

    Where prompts and answers are drawn from the same file they come from the same row.
    """

    path: Annotated[str, BeforeValidator(_checked_path)]
    """CSV file with a header line, relative to the scenario's folder."""

    column: Annotated[str, Field(min_length=1)]
    """Name of the column in the header."""

    in_order: bool = False
    """Take the rows from the first on, and again from the first after the last; false = draw at random."""


class TokenLengths(Spec):
    """Lengths of prompts or answers: a number of tokens, or exactly one of these distributions."""

    model_config = ConfigDict(
        json_schema_extra={
            "type": ["object", "integer"],
            "minimum": 1,
            "maximum": MAX_TOKENS,
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        }
    )

    constant: Tokens | None = None
    """The same number of tokens for all."""

    lognormal: LognormalLengths | None = None
    """Random lengths, skewed as those of real traffic."""

    uniform: UniformLengths | None = None
    """Random lengths of a range."""

    empirical: EmpiricalLengths | None = None
    """Lengths from a CSV file."""

    @model_validator(mode="before")
    @classmethod
    def _number_is_constant(cls, data: Any) -> Any:
        if isinstance(data, dict | TokenLengths):
            return data
        if isinstance(data, int) and not isinstance(data, bool):
            if not 1 <= data <= MAX_TOKENS:
                raise ValueError(f"must be from 1 to {MAX_TOKENS}")
            return {"constant": data}
        raise ValueError(f"must be a whole number, or a section with one of {', '.join(cls.model_fields)}")

    @model_validator(mode="after")
    def _check(self) -> TokenLengths:
        given = [key for key in type(self).model_fields if getattr(self, key) is not None]
        if not given:
            raise Problems([((), f"must have one of {', '.join(type(self).model_fields)}")])
        if len(given) > 1:
            raise Problems([((key,), f"cannot be given together with {given[0]}") for key in given[1:]])
        return self

    @model_serializer(mode="wrap")
    def _only_what_is_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None}
