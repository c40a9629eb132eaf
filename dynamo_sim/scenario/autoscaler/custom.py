"""A custom class (spec 10, 1)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from dynamo_sim.scenario.autoscaler.parts import PolicySpec
from dynamo_sim.scenario.class_name import CLASS_KEY, as_written, named_like


class CustomScaling(PolicySpec):
    """A custom class with a method `decide(now_s, view, fleet)`."""

    kind: Literal["custom"] = "custom"
    """Kind of policy."""

    class_: Annotated[str, named_like("my_policy:Halfway"), CLASS_KEY]
    """As module:Class; the module is searched beside the scenario first."""

    options: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the class."""

    @model_serializer(mode="wrap")
    def _by_written_name(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return as_written(handler(self))
