"""A class of the user."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from dynamo_sim.scenario.class_name import CLASS_KEY, as_written, named_like
from dynamo_sim.scenario.routing.metrics import ScrapingSpec


class CustomRouting(ScrapingSpec):
    """A custom class with a method `pick(request, workers, now_ms)`."""

    mode: Literal["custom"]
    """How workers are chosen."""

    class_: Annotated[str, named_like("my_router:Sticky"), CLASS_KEY]
    """As module:Class; the module is searched beside the scenario first."""

    options: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the class."""

    @model_serializer(mode="wrap")
    def _by_written_name(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return as_written(handler(self))
