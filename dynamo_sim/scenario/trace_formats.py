"""Names of trace formats in a scenario, made of the table of formats."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from dynamo_sim.traces.formats import BY_NAME, FORMATS


def _without_alias(name: Any) -> Any:
    return BY_NAME[name].name if isinstance(name, str) and name in BY_NAME else name


_NAMES = tuple(each.name for each in FORMATS)
_NAMES_TO_RETIME = tuple(each.name for each in FORMATS if each.is_workflow is not True)

FormatName = Annotated[Literal[_NAMES], BeforeValidator(_without_alias)]  # type: ignore[valid-type]
"""A format of traces, by its name or an alias."""

RetimedFormatName = Annotated[Literal[_NAMES_TO_RETIME], BeforeValidator(_without_alias)]  # type: ignore[valid-type]
"""A format whose requests can be given other times."""
