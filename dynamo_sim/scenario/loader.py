"""Loading a scenario: YAML file plus overrides, checked, with errors that say where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath

from pydantic import ValidationError

from dynamo_sim.errors import ScenarioError
from dynamo_sim.files.input import read_whole
from dynamo_sim.limits import MAX_YAML_BYTES
from dynamo_sim.scenario import dotted_keys
from dynamo_sim.scenario.autoscaler.manifest import is_inline
from dynamo_sim.scenario.explain import explain
from dynamo_sim.scenario.files import BASE_DIR, PATH_KEYS
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.scenario.yaml_source import YamlSource, read_yaml
from dynamo_sim.text import cut

MAX_OVERRIDE = 200
"""Letters of an override that a message repeats."""

OPTIONS = ("--set", "--vary")
"""Options of the command line that bring overrides; errors name the one that did."""


def load_scenario(
    path: str | FilePath, overrides: Iterable[str] = (), varied: Iterable[str] = ()
) -> Scenario:
    """Read and check a scenario file.

    Args:
        path: a YAML file; relative paths in it start from its folder.
        overrides: ``key=value`` texts like `scaling.0.workers=3`: a dotted key, and a value in YAML.
        varied: more of them, applied last; errors call them ``--vary`` instead of ``--set``.

    Raises:
        ScenarioError: anything is wrong; one line ``file:line:column: key: what`` for each problem.
    """
    source = _source(path, overrides, varied)
    try:
        return Scenario.model_validate(source.data, context={BASE_DIR: FilePath(path).resolve().parent})
    except ValidationError as error:
        places = [
            (
                source.place_of(problem.path, str(path), problem.about_key) if problem.path else str(path),
                problem.text,
            )
            for problem in explain(error, Scenario)
        ]
        places.sort(key=lambda item: _order(item[0]))  # "N more problems" has no place and comes last
        raise ScenarioError(*(f"{place}: {text}" for place, text in places)) from None


def place_of(
    key: str, path: str | FilePath, overrides: Iterable[str] = (), varied: Iterable[str] = ()
) -> str:
    """Where a scenario that could be loaded has a dotted key: ``file:line:column``, or the option that gave it.

    Only the file is named if it cannot be read once more, as a pipe.
    """
    try:
        source = _source(path, overrides, varied)
    except ScenarioError:
        return str(path)
    return source.place_of(dotted_keys.parse(key), str(path))


def _source(path: str | FilePath, overrides: Iterable[str], varied: Iterable[str]) -> YamlSource:
    """The data of a scenario file with its overrides, and the place of each key and value."""
    changes = [
        (option, text)
        for option, texts in zip(OPTIONS, (overrides, varied), strict=True)
        for text in _texts(texts)
    ]
    source = read_yaml(_text_of(FilePath(path)), str(path))
    if source.data is None:
        raise ScenarioError(f"{path}: the file is empty; a scenario needs at least name and workload")
    if not isinstance(source.data, dict):
        raise ScenarioError(
            f"{source.values[()]}: not a scenario: the file must be a section of keys like 'name: ...'"
        )
    for option, text in changes:
        _apply(source, text, option)
    return source


def _texts(overrides: Iterable[str]) -> list[str]:
    """The overrides as a list.

    Raises:
        ScenarioError: they are something else, like one text or a mapping.
    """
    if isinstance(overrides, Iterable) and not isinstance(overrides, str | bytes | Mapping):
        texts = list(overrides)
        if all(isinstance(text, str) for text in texts):
            return texts
    raise ScenarioError(
        f"overrides: found {overrides!r}; must be a list of texts like ['fleet.workers=8']; "
        "Scenario.with_ changes keys to values"
    )


def _text_of(file: FilePath) -> str:
    try:
        return read_whole(file, MAX_YAML_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise ScenarioError(f"{file}: no such file") from None
    except IsADirectoryError:
        raise ScenarioError(f"{file}: is a folder, not a scenario file") from None
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{file}: not a text file (byte {error.start} is not UTF-8)") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ScenarioError(f"{file}: cannot be read: {reason}") from None


def _apply(source: YamlSource, override: str, option: str) -> None:
    """Change the data of `source`; what comes from the override has it as its place."""
    key, equals, text = override.partition("=")
    place = f"{option} {cut(override, MAX_OVERRIDE)}"
    if not equals:
        raise ScenarioError(f"{place}: must be KEY=VALUE, like fleet.workers=8")
    try:
        value = read_yaml(text, place).data
    except ScenarioError:
        raise ScenarioError(f"{place}: the value is not YAML") from None
    try:
        path = dotted_keys.parse(key)
        if path[-1] in PATH_KEYS and isinstance(value, str) and not is_inline(value):
            value = value if value.startswith("~") else str(FilePath.cwd() / value)
        dotted_keys.put(source.data, path, value)
    except ScenarioError as error:
        raise ScenarioError(*(f"{place}: {problem}" for problem in error.problems)) from None
    for depth in range(1, len(path) + 1):
        source.keys.setdefault(path[:depth], place)
        source.values.setdefault(path[:depth], place)
    for known in (source.keys, source.values):
        for old in [old for old in known if old[: len(path)] == path]:
            known[old] = place


def _order(place: str) -> tuple[bool, int, int]:
    """Problems of the file by line and column, then those of overrides."""
    numbers = re.search(r":(\d+):(\d+)$", place)
    if place.startswith(OPTIONS) or numbers is None:
        return True, 0, 0
    return False, int(numbers[1]), int(numbers[2])
