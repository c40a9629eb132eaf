"""Dotted keys (`scaling.0.workers`): setting one value deep inside plain data."""

from __future__ import annotations

import re
from typing import Any

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.base import Path, dotted
from dynamo_sim.text import counted, cut, is_text

MAX_PARTS = 30
"""A scenario is less deep than this."""

_NEGATIVE = re.compile("-[0-9]+")


def parse(key: str) -> Path:
    """Split a dotted key; parts that are whole numbers are list positions.

    Raises:
        ScenarioError: the key has an empty part, a negative one, or more parts than a scenario is deep.
    """
    parts = key.strip().split(".", MAX_PARTS)
    if not all(parts) or len(parts) > MAX_PARTS or not is_text(key):
        raise ScenarioError(f"{cut(repr(key))}: not a dotted key like fleet.workers or scaling.0.workers")
    if any(_NEGATIVE.fullmatch(part) for part in parts):
        raise ScenarioError(f"{key!r}: items of a list are counted from 0")
    return tuple(int(part) if part.isascii() and part.isdigit() else part for part in parts)


def put(data: dict[str, Any], path: Path, value: Any) -> None:
    """Set the value at `path`, making the sections on the way that are absent.

    Keys are not checked here: an unknown one is found, and explained, when the whole is validated.

    Raises:
        ScenarioError: the path leads through a value that has no parts, or past the end of a list.
    """
    here: Any = data
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        if isinstance(here, dict):
            part = str(part)
            if not last and here.get(part) is None:
                _check_no_item(path, depth)
                here[part] = {}
        elif isinstance(here, list | tuple):
            _check_position(here, path[: depth + 1])
        else:
            raise ScenarioError(
                f"{dotted(path)}: {dotted(path[:depth])} is a single value and has no {part!r}"
            )
        if last:
            here[part] = value
        else:
            if isinstance(here[part], tuple):
                here[part] = list(here[part])
            here = here[part]


def _check_no_item(path: Path, depth: int) -> None:
    """A list that is not there has no items to change."""
    if isinstance(path[depth + 1], int):
        raise ScenarioError(
            f"{dotted(path)}: {dotted(path[: depth + 1])} is not given, so it has no item {path[depth + 1]}; "
            "give the whole list"
        )


def _check_position(items: list[Any] | tuple[Any, ...], path: Path) -> None:
    position = path[-1]
    if not isinstance(position, int):
        raise ScenarioError(
            f"{dotted(path)}: {dotted(path[:-1])} is a list; name its items by position, from 0"
        )
    if position >= len(items):
        raise ScenarioError(
            f"{dotted(path)}: {dotted(path[:-1])} has {counted(len(items), 'item')}, counted from 0"
        )
