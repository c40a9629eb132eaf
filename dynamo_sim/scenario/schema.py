"""The JSON Schema of scenario files, for editors."""

from __future__ import annotations

import json
import re
from typing import Any

from dynamo_sim.scenario.specs import Scenario

_SPEC_REFERENCE = re.compile(r"\s*\(spec [^)]*\)")


def scenario_schema() -> dict[str, Any]:
    """The schema as data; descriptions are the docstrings of the fields."""
    schema: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema.update(Scenario.model_json_schema())
    _tidy(schema)
    return schema


def _tidy(node: Any) -> None:
    """Remove what helps nobody in an editor: references to the specification, whole sections as defaults."""
    if isinstance(node, list):
        for item in node:
            _tidy(item)
    elif isinstance(node, dict):
        if isinstance(node.get("default"), dict) and "description" in node:
            del node["default"]
        if isinstance(node.get("description"), str):
            node["description"] = _SPEC_REFERENCE.sub("", node["description"]).replace("\n", " ")
        for item in node.values():
            _tidy(item)


def scenario_schema_text() -> str:
    """The schema as the text of scenarios/schema.json."""
    return json.dumps(scenario_schema(), indent=2, ensure_ascii=False) + "\n"
