"""A custom class (spec 10, 1)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, model_serializer

from dynamo_sim.scenario.autoscaler.parts import PolicySpec


def is_class_name(text: str) -> bool:
    """Whether it is like ``module:Class``."""
    module, _, attribute = text.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))


def _checked_class(text: str) -> str:
    if not is_class_name(text):
        raise ValueError("must be module:Class, like my_policy:Halfway for the class Halfway of my_policy.py")
    return text


class CustomScaling(PolicySpec):
    """A custom class with a method `decide(now_s, view, fleet)`."""

    kind: Literal["custom"] = "custom"
    """Kind of policy."""

    class_: Annotated[
        str,
        AfterValidator(_checked_class),
        Field(alias="class", json_schema_extra={"pattern": r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$"}),
    ]
    """As module:Class; the module is searched beside the scenario first."""

    options: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the class."""

    @model_serializer(mode="wrap")
    def _by_written_name(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {"class" if key == "class_" else key: value for key, value in handler(self).items()}
