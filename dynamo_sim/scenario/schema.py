"""The JSON Schema of scenario files, for editors."""

from __future__ import annotations

import ast
import inspect
import json
import re
from itertools import pairwise
from textwrap import dedent
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from dynamo_sim.scenario.specs import Scenario

_SPEC_REFERENCE = re.compile(r"\s*\(spec [^)]*\)")


class _Described(GenerateJsonSchema):
    """Describes each key by the docstring of its field.

    Pydantic can do that by itself, but then reads the source of all models at every start of a run.
    """

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        described = super().model_schema(schema)
        texts = _field_docstrings(schema["cls"])
        for key, about in described.get("properties", {}).items():
            if key in texts:
                described["properties"][key] = {"description": texts[key], **about}
        return described


def _field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings below the fields of a class and its bases, by key."""
    texts: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if not cls.__module__.startswith("dynamo_sim."):
            continue
        (definition,) = ast.parse(dedent(inspect.getsource(cls))).body
        assert isinstance(definition, ast.ClassDef)
        for field, below in pairwise(definition.body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            ):
                key = model.model_fields[field.target.id].alias or field.target.id
                texts[key] = inspect.cleandoc(below.value.value)
    return texts


def scenario_schema() -> dict[str, Any]:
    """The schema as data; descriptions are the docstrings of the fields."""
    schema: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema.update(Scenario.model_json_schema(schema_generator=_Described))
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
