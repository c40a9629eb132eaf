"""The Dynamo planner itself (spec 10, 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo

from dynamo_sim.scenario.autoscaler.parts import PolicySpec
from dynamo_sim.scenario.files import existing_path


def _checked_config(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        return existing_path(value, info.context)
    if isinstance(value, Mapping):
        return value
    raise ValueError("must be a section of keys, or the path of a file with one")


class DynamoPlannerScaling(PolicySpec):
    """The Dynamo planner itself; needs its package."""

    kind: Literal["dynamo_planner"] = "dynamo_planner"
    """Kind of policy."""

    config: Annotated[
        Any,
        BeforeValidator(_checked_config),
        Field(json_schema_extra={"type": ["string", "object"]}),
    ]
    """The planner's configuration, or the path of a JSON or YAML file with it."""
