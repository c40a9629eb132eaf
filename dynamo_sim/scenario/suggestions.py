"""What an unknown key or word may have meant: one like it here, the same one elsewhere, or what there is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from dynamo_sim.scenario.base import Path, dotted

MAX_HOMES = 4
"""A key that is known in more sections than this was hardly meant for one of them."""

MAX_LISTED = 12
"""Most keys of a section that are listed when nothing is like an unknown one."""

ALIKE = 0.7
"""How alike two names must be (`difflib`: 1 = equal); names of few letters are less alike for one mistake."""
SHORT_ALIKE, SHORT_LETTERS = 0.65, 4
ALIKE_ELSEWHERE = 0.85

OF_TWO_FLEETS = {"prefill", "decode"}
"""Sections of a scenario with two fleets."""

OTHER_WORDS = {
    "slo": "sla",
    "slos": "sla",
    "replicas": "workers",
    "qps": "rate_rps",
    "rps": "rate_rps",
    "scheduler": "engine_type",
}
"""Words that people use for keys named otherwise."""


def did_you_mean(name: Any, options: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the option most like `name`, or nothing."""
    close = closest(name, options)
    return f"; did you mean {close!r}?" if close else ""


def closest(name: Any, options: Iterable[str], alike: float = ALIKE) -> str | None:
    """The option most like `name`, or None; capitals, and - for _, make no difference."""
    wanted = _folded(name)
    if alike == ALIKE and len(wanted) <= SHORT_LETTERS:
        alike = SHORT_ALIKE
    by_folded = {_folded(option): option for option in options}
    close = difflib.get_close_matches(wanted, by_folded, n=1, cutoff=alike)
    return by_folded[close[0]] if close else None


def listed(options: Iterable[str]) -> str:
    """Words in quotes, with commas."""
    return ", ".join(map(repr, options))


def hint(path: Path, models: tuple[type[BaseModel], ...], root: type[BaseModel]) -> str:
    """What the unknown key at the end of `path` may have meant.

    Args:
        path: where it stands.
        models: the section it stands in.
        root: the model of the whole.
    """
    name = str(path[-1])
    if name == "<<":
        return "; merge keys are not supported, repeat the keys"
    siblings = [
        model for model in models_at(path[:-1], root) if model not in models and name in model.model_fields
    ]
    if siblings:
        return f"; {name!r} belongs to {union_key(siblings[0])} {listed(all_tags(siblings))}"
    here = keys_of(models[0]) if models else []
    if meant := _other_word(name, here):
        return f"; did you mean {meant!r}?"
    homes = [home for home in _homes(name, root) if home != path[:-1]]
    if len(homes) == 1:
        return f"; {name!r} belongs in {dotted(homes[0]) or 'the top level'}"
    if close := closest(name, here):
        return f"; did you mean {close!r}?"
    if 1 < len(homes) <= MAX_HOMES:
        return f"; {name!r} belongs in {' or '.join(dotted(home) for home in homes)}"
    if close := _closest_by_a_word(name, here):
        return f"; did you mean {close!r}?"
    if elsewhere := _elsewhere(name, root):
        return f"; did you mean {elsewhere!r}?"
    return f"; known here: {', '.join(here)}" if len(here) <= MAX_LISTED else ""


def _folded(name: Any) -> str:
    return str(name).casefold().replace("-", "_")


def _other_word(name: str, options: Sequence[str]) -> str | None:
    meant = OTHER_WORDS.get(_folded(name))
    return meant if meant in options else None


def _closest_by_a_word(name: str, options: Iterable[str]) -> str | None:
    """The option that has a word most like `name`: ``block_size`` for ``blok``."""
    by_word: dict[str, str] = {}
    for option in options:
        for word in option.split("_"):
            by_word.setdefault(word, option)
    close = difflib.get_close_matches(name.casefold(), by_word, n=1, cutoff=0.8)
    return by_word[close[0]] if close else None


def _elsewhere(name: str, root: type[BaseModel]) -> str | None:
    """The dotted key, nearest to the top, that is meant by another word, is like `name`, or begins with it."""
    by_key: dict[str, Path] = {}
    for path in sorted(_known_paths(root), key=len):
        by_key.setdefault(str(path[-1]), path)
    beginnings = [key for key in by_key if key.startswith(f"{_folded(name)}_")]
    meant = (
        _other_word(name, list(by_key))
        or closest(name, by_key, ALIKE_ELSEWHERE)
        or (beginnings[0] if len(beginnings) == 1 else None)
    )
    return dotted(by_key[meant]) if meant else None


# ---------------------------------------------------------------- the keys of a model


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of a section as they are written."""
    return [field.alias or name for name, field in model.model_fields.items()]


def key_paths(model: type[BaseModel], above: Path = ()) -> Iterator[Path]:
    """Every key of a model and of the sections in it, from the top; those of all members of a union, once each.

    A list of sections is there with its first item: ``("scaling", 0, "workers")``.
    """
    seen = set()
    for name, field in model.model_fields.items():
        path: Path = (*above, field.alias or name)
        yield path
        of_section = (*path, 0) if _is_list(field.annotation) else path
        for below in models_of(field.annotation):
            for deeper in key_paths(below, of_section):
                if deeper not in seen:
                    seen.add(deeper)
                    yield deeper


def _is_list(annotation: Any) -> bool:
    return any(get_origin(part) in (list, tuple) for part in (annotation, *get_args(annotation)))


@cache
def _known_paths(root: type[BaseModel]) -> tuple[Path, ...]:
    """`key_paths`, worked out once: there are thousands, and every unknown key is looked for in them."""
    return tuple(key_paths(root))


def _homes(name: str, root: type[BaseModel]) -> list[Path]:
    """Sections that know a key of this name; of a list without the position.

    The sections of a prefill and a decode fleet, which have the keys of the section for one fleet, are left out.
    """
    paths = (tuple(part for part in path if isinstance(part, str)) for path in _known_paths(root))
    return [path[:-1] for path in paths if path[-1] == name and not OF_TWO_FLEETS & {*path[:-1]}]


def models_of(annotation: Any) -> tuple[type[BaseModel], ...]:
    """The models in a type: one, or the members of a union; of a list those of its items."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    return tuple(model for part in get_args(annotation) for model in models_of(part))


def models_at(path: Path, root: type[BaseModel]) -> tuple[type[BaseModel], ...]:
    """All models that a section at this path can be."""
    models: tuple[type[BaseModel], ...] = (root,)
    for key in path:
        if isinstance(key, str):
            fields = [model.model_fields[key] for model in models if key in model.model_fields]
            models = tuple(below for field in fields for below in models_of(field.annotation))
    return models


def tags_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The words that choose this member of a union; unions are told apart by `kind`, `mode` or `shape`."""
    key = union_key(model)
    return get_args(model.model_fields[key].annotation) if key else ()


def all_tags(models: Iterable[type[BaseModel]]) -> list[str]:
    """The words that choose one of several members of a union."""
    return [tag for model in models for tag in tags_of(model)]


def union_key(model: type[BaseModel]) -> str:
    """The key that tells the members of a union apart; empty where it is in none."""
    return next((key for key in ("kind", "mode", "shape") if key in model.model_fields), "")
