"""What all parts of a scenario share: strict frozen models and the number types of their fields."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dynamo_sim.text import cut

MAX_COUNT = 2**63 - 1
"""Counts beyond this fit no array; the reference stops at 2^64 - 1."""

Path = tuple[str | int, ...]
"""Where something stands in a scenario: keys and list positions from the top."""


class Spec(BaseModel):
    """A section of a scenario: immutable, refuses unknown keys, converts nothing ("8" is no number)."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_default=False,
        defer_build=True,  # most sections are in few scenarios, and their validators take long to build
        json_schema_extra={"additionalProperties": False},
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls_that_mean_default(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {
            key: value for key, value in data.items() if value is not None or not _null_is_default(cls, key)
        }

    def given(self) -> dict[str, Any]:
        """The keys that were written down, as plain data; defaults and derived values are left out."""
        return self.model_dump(exclude_unset=True)


def _null_is_default(model: type[BaseModel], key: str) -> bool:
    field = model.model_fields.get(key)
    return field is not None and field.json_schema_extra is _null_too


class Problems(ValueError):
    """Several findings of one check, each with its place relative to the model that was checked."""

    def __init__(self, found: Iterable[tuple[Path, str]]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(f"{dotted(path)}: {text}" if path else text for path, text in self.found))


class CheckedSpec(Spec):
    """A section whose parts can contradict each other."""

    @model_validator(mode="after")
    def _check_conflicts(self) -> Self:
        found = list(self._conflicts())
        if found:
            raise Problems(found)
        return self

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        """What the parts say against each other, each with its place."""
        return iter(())


def repeats(values: Iterable[Hashable]) -> Iterator[tuple[int, int]]:
    """Position of every value that was there before, and of the first one like it."""
    first_at: dict[Hashable, int] = {}
    for position, value in enumerate(values):
        first = first_at.setdefault(value, position)
        if first != position:
            yield position, first


def dotted(path: Path) -> str:
    """``("scaling", 0, "workers")`` as people write it: ``scaling.0.workers``."""
    return ".".join(cut(str(part)) for part in path)


def in_lower_case(value: Any) -> Any:
    """Text in lower case; anything else as it is, for the type check to refuse."""
    return value.lower() if isinstance(value, str) else value


def _word_for_infinity(value: Any) -> Any:
    return float("inf") if value == "inf" else value


Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
"""A whole number from 0."""

PositiveCount = Annotated[int, Field(ge=1, le=MAX_COUNT)]
"""A whole number from 1."""

NonNegative = Annotated[float, Field(ge=0)]
"""A finite number from 0."""

Fraction = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""

Ratio = Annotated[float, Field(ge=0, allow_inf_nan=True), BeforeValidator(_word_for_infinity)]
"""A speed-up from 0; infinity (`.inf`, or the text "inf" that `Scenario.to_dict` writes) is allowed."""


def _null_too(schema: dict[str, Any]) -> None:
    value = {key: schema.pop(key) for key in list(schema) if key not in ("default", "description", "title")}
    schema["anyOf"] = [value, {"type": "null"}]


NULL_IS_DEFAULT = Field(json_schema_extra=_null_too)
"""Marks fields where null is written for the default: the key is dropped before the checks."""

AnyCase = BeforeValidator(in_lower_case)
"""Marks names that may be written in any case."""
