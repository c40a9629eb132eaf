"""What is wrong with a scenario, in plain words: pydantic's findings as lines a person can act on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_origin

from pydantic import BaseModel, ValidationError

from dynamo_sim.scenario.base import MAX_COUNT, Path, Problems, dotted
from dynamo_sim.scenario.duration_text import UNIT_NAMES, duration_in, unit_of
from dynamo_sim.scenario.suggestions import all_tags, did_you_mean, hint, listed, models_of, tags_of
from dynamo_sim.text import cut, plain_number

MAX_PROBLEMS = 100
"""Problems that one error explains; a file with more of them is another kind of file."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        path: where, from the top of the scenario; for a missing key the path it should have.
        text: the dotted path and what is wrong with it.
        about_key: whether the key itself is wrong, rather than its value.
    """

    path: Path
    text: str
    about_key: bool = False


def explain(error: ValidationError, root: type[BaseModel]) -> list[Problem]:
    """Turn a validation error of the model `root` into problems, in pydantic's order; of very many only the first."""
    problems: list[Problem] = []
    items = error.errors(include_url=False)
    for item in items[:MAX_PROBLEMS]:
        path, models = _locate(item["loc"], root)
        problems.extend(_problems_of(item, path, models, root))
    if len(items) > MAX_PROBLEMS:
        problems.append(Problem((), f"{len(items) - MAX_PROBLEMS:,} more problems; is this a scenario?"))
    return problems


def _problems_of(
    item: Any, path: Path, models: tuple[type[BaseModel], ...], root: type[BaseModel]
) -> Iterator[Problem]:
    kind, context = item["type"], item.get("ctx", {})
    if kind == "extra_forbidden":
        yield Problem(path, f"{dotted(path)}: unknown key{hint(path, models, root)}", about_key=True)
    elif kind == "value_error" and isinstance(context["error"], Problems):
        for below, text in context["error"].found:
            yield Problem(path + below, f"{dotted(path + below)}: {text}")
    elif kind == "missing":
        yield Problem(path, f"{dotted(path)}: missing, and has no default")
    elif kind == "union_tag_not_found":
        path = (*path, context["discriminator"].strip("'"))
        yield Problem(path, f"{dotted(path)}: missing; must be one of {listed(all_tags(models))}")
    elif kind == "union_tag_invalid":
        path, tag = (*path, context["discriminator"].strip("'")), context["tag"]
        tags = all_tags(models)
        yield Problem(
            path,
            f"{dotted(path)}: found {found(tag)}; must be one of {listed(tags)}{did_you_mean(tag, tags)}",
        )
    else:
        where = dotted(path) or "the scenario"
        yield Problem(path, f"{where}: found {found(item['input'])}; {_demand(item, path)}")


# ---------------------------------------------------------------- values

_PLAIN_DEMANDS = {
    "bool_type": "must be true or false",
    "dict_type": "must be a section of keys",
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "less_than_equal": "must be at most {le}",
    "list_type": "must be a list",
    "multiple_of": "must be a multiple of {multiple_of}",
    "model_attributes_type": "must be a section of keys",
    "model_type": "must be a section of keys",
    "string_pattern_mismatch": "must be letters, digits, spaces and . _ - only, the first a letter or digit",
    "string_too_long": "must have at most {max_length} characters",
    "string_type": "must be a text",
    "too_long": "must have at most {max_length} items",
    "too_short": "must have at least {min_length} item",
    "tuple_type": "must be a list",
}


def _demand(item: Any, path: Path) -> str:
    kind, value, context = item["type"], item["input"], item.get("ctx", {})
    if kind in ("float_type", "int_type") and isinstance(value, str) and (wanted := _in_unit(value, path)):
        return wanted
    if kind == "literal_error":
        options = [option.strip("'") for option in context["expected"].replace(" or ", ", ").split(", ")]
        one_of = "must be one of " if len(options) > 1 else "must be "
        return one_of + listed(options) + did_you_mean(value, options)
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_type" and isinstance(value, int | float) and not isinstance(value, bool):
        return f'must be a text; put it in quotes: "{value}"'
    if kind in ("int_type", "float_type") and isinstance(value, str) and _is_number(value):
        return _PLAIN_DEMANDS[kind] + "; remove the quotes"
    if (
        kind in ("int_type", "int_from_float")
        and isinstance(value, float)
        and value.is_integer()
        and abs(value) <= MAX_COUNT
    ):
        return f"must be a whole number; write {int(value)}"
    if kind in ("model_type", "model_attributes_type") and value is None:
        return "must be a section of keys; leave it out for its defaults"
    if kind in _PLAIN_DEMANDS:
        return _PLAIN_DEMANDS[kind].format(**{key: _whole(value) for key, value in context.items()})
    text: str = item["msg"]
    return text[:1].lower() + text[1:]


def _in_unit(text: str, path: Path) -> str | None:
    """The demand for a key of time that was given a duration such as ``2m``; None for other keys and texts."""
    unit = unit_of(next((part for part in reversed(path) if isinstance(part, str)), ""))
    amount = None if unit is None else duration_in(text, unit)
    if unit is None or amount is None:
        return None
    return f"must be a number of {UNIT_NAMES[unit]}; write {plain_number(amount)}"


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def found(value: Any) -> str:
    """A value as it would be written in a scenario, shortened."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a section of keys"
    if isinstance(value, list | tuple):
        return "a list"
    return cut(repr(value))


# ---------------------------------------------------------------- places


def _locate(loc: tuple[str | int, ...], root: type[BaseModel]) -> tuple[Path, tuple[type[BaseModel], ...]]:
    """The path a pydantic location means, and the model its last key is a field of.

    Pydantic puts the chosen member of a union into its locations; a path has only keys and positions. For a
    location that ends at a union all its members are returned.
    """
    path: list[str | int] = []
    parent: tuple[type[BaseModel], ...] = ()
    models: tuple[type[BaseModel], ...] = (root,)
    names_follow = False
    for part in loc:
        if isinstance(part, int):
            path.append(part)
        elif part == "[key]":  # the name itself, of a mapping, which is already there
            continue
        elif names_follow:  # a key of a mapping from free names
            path.append(part)
            names_follow = False
        elif len(models) > 1:
            models = tuple(model for model in models if part in tags_of(model))
        else:
            path.append(part)
            parent = models
            field = models[0].model_fields.get(part) if models else None
            models = models_of(field.annotation) if field else ()
            names_follow = field is not None and get_origin(field.annotation) is dict
    return tuple(path), models if len(models) > 1 else parent
