"""The key ``class`` of sections that name a class of the user."""

from __future__ import annotations

from typing import Any

from pydantic import AfterValidator, Field

from dynamo_sim.user_code.loading import is_class_name

CLASS_KEY: Any = Field(alias="class", json_schema_extra={"pattern": r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$"})
"""How a field ``class_`` is written."""


def named_like(example: str) -> AfterValidator:
    """Checks names like ``module:Class``; messages give the example."""
    module, _, name = example.partition(":")

    def checked(text: str) -> str:
        if not is_class_name(text):
            raise ValueError(f"must be module:Class, like {example} for the class {name} of {module}.py")
        return text

    return AfterValidator(checked)


def as_written(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a section with its key as a person writes it."""
    return {"class" if key == "class_" else key: value for key, value in data.items()}
