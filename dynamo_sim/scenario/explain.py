"""What is wrong with a scenario, in plain words: pydantic's findings as lines a person can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from dynamo_sim.scenario.base import MAX_COUNT, Path, Problems, dotted
from dynamo_sim.text import cut

MAX_HOMES = 4
"""A key that is known in more sections than this was hardly meant for one of them."""

MAX_LISTED = 12
"""Most keys of a section that are listed when nothing is like an unknown one."""


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
    """Turn a validation error of the model `root` into problems, in pydantic's order."""
    problems: list[Problem] = []
    for item in error.errors(include_url=False):
        path, models = _locate(item["loc"], root)
        problems.extend(_problems_of(item, path, models, root))
    return problems


def _problems_of(
    item: Any, path: Path, models: tuple[type[BaseModel], ...], root: type[BaseModel]
) -> Iterator[Problem]:
    kind, context = item["type"], item.get("ctx", {})
    if kind == "extra_forbidden":
        yield Problem(path, f"{dotted(path)}: unknown key{_hint(path, models, root)}", about_key=True)
    elif kind == "value_error" and isinstance(context["error"], Problems):
        for below, text in context["error"].found:
            yield Problem(path + below, f"{dotted(path + below)}: {text}")
    elif kind == "missing":
        yield Problem(path, f"{dotted(path)}: missing, and has no default")
    elif kind == "union_tag_not_found":
        path = (*path, context["discriminator"].strip("'"))
        yield Problem(path, f"{dotted(path)}: missing; must be one of {_listed(_all_tags(models))}")
    elif kind == "union_tag_invalid":
        path, tag = (*path, context["discriminator"].strip("'")), context["tag"]
        tags = _all_tags(models)
        yield Problem(
            path,
            f"{dotted(path)}: found {found(tag)}; must be one of {_listed(tags)}{did_you_mean(tag, tags)}",
        )
    else:
        where = dotted(path) or "the scenario"
        yield Problem(path, f"{where}: found {found(item['input'])}; {_demand(item)}")


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
    "model_attributes_type": "must be a section of keys",
    "model_type": "must be a section of keys",
    "string_pattern_mismatch": "must be letters, digits, spaces and . _ - only, the first a letter or digit",
    "string_too_long": "must have at most {max_length} characters",
    "string_type": "must be a text",
    "too_long": "must have at most {max_length} items",
    "too_short": "must have at least {min_length} item",
    "tuple_type": "must be a list",
}


def _demand(item: Any) -> str:
    kind, value, context = item["type"], item["input"], item.get("ctx", {})
    if kind == "literal_error":
        options = [option.strip("'") for option in context["expected"].replace(" or ", ", ").split(", ")]
        one_of = "must be one of " if len(options) > 1 else "must be "
        return one_of + _listed(options) + did_you_mean(value, options)
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


def _listed(options: Iterable[str]) -> str:
    return ", ".join(map(repr, options))


def _all_tags(models: Iterable[type[BaseModel]]) -> list[str]:
    return [tag for model in models for tag in tags_of(model)]


# ---------------------------------------------------------------- suggestions


def did_you_mean(name: Any, options: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the option most like `name`, or nothing."""
    close = _closest(name, options)
    return f"; did you mean {close!r}?" if close else ""


def _closest(name: Any, options: Iterable[str]) -> str | None:
    by_folded = {option.casefold().replace("-", "_"): option for option in options}
    close = difflib.get_close_matches(str(name).casefold().replace("-", "_"), by_folded, n=1, cutoff=0.7)
    return by_folded[close[0]] if close else None


def _hint(path: Path, models: tuple[type[BaseModel], ...], root: type[BaseModel]) -> str:
    """What an unknown key may have meant: a key like it, the same key elsewhere, or else what there is."""
    name = str(path[-1])
    if name == "<<":
        return "; merge keys are not supported, repeat the keys"
    others = [
        model for model in _models_at(path[:-1], root) if model not in models and name in model.model_fields
    ]
    if others:
        return f"; {name!r} belongs to {_union_key(others[0])} {_listed(_all_tags(others))}"
    known = _keys_of(models[0]) if models else []
    close = _closest(name, known)
    if close:
        return f"; did you mean {close!r}?"
    homes = [home for home in _homes(name, root) if home != path[:-1]]
    if len(homes) == 1:
        return f"; {name!r} belongs in {dotted(homes[0]) or 'the top level'}"
    if 1 < len(homes) <= MAX_HOMES:
        return f"; {name!r} belongs in {' or '.join(dotted(home) for home in homes)}"
    if len(known) <= MAX_LISTED:
        return f"; known here: {', '.join(known)}"
    close = _closest_by_a_word(name, known)
    return f"; did you mean {close!r}?" if close else ""


def _closest_by_a_word(name: str, options: Iterable[str]) -> str | None:
    """The option that has a word most like `name`: ``block_size`` for ``blok``."""
    by_word: dict[str, str] = {}
    for option in options:
        for word in option.split("_"):
            by_word.setdefault(word, option)
    close = difflib.get_close_matches(name.casefold(), by_word, n=1, cutoff=0.8)
    return by_word[close[0]] if close else None


def _keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of a section as they are written."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _homes(name: str, model: type[BaseModel], path: Path = ()) -> Iterator[Path]:
    """Sections that know a key of this name."""
    if name in model.model_fields:
        yield path
    for key, field in model.model_fields.items():
        seen = set()
        for below in models_of(field.annotation):
            for home in _homes(name, below, (*path, key)):
                if home not in seen:
                    seen.add(home)
                    yield home


# ---------------------------------------------------------------- places


def models_of(annotation: Any) -> tuple[type[BaseModel], ...]:
    """The models in a type: one, or the members of a union; of a list those of its items."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    return tuple(model for part in get_args(annotation) for model in models_of(part))


def _models_at(path: Path, root: type[BaseModel]) -> tuple[type[BaseModel], ...]:
    """All models that a section at this path can be."""
    models: tuple[type[BaseModel], ...] = (root,)
    for key in path:
        if isinstance(key, str):
            fields = [model.model_fields[key] for model in models if key in model.model_fields]
            models = tuple(below for field in fields for below in models_of(field.annotation))
    return models


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


def tags_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The words that choose this member of a union; unions are told apart by `kind`, `mode` or `shape`."""
    key = _union_key(model)
    return get_args(model.model_fields[key].annotation) if key else ()


def _union_key(model: type[BaseModel]) -> str:
    return next((key for key in ("kind", "mode", "shape") if key in model.model_fields), "")
