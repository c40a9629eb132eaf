"""The scenario of a result as YAML for people, that can be run again."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.autoscaler.manifest import is_inline
from dynamo_sim.scenario.files import PATH_KEYS
from dynamo_sim.scenario.yaml_source import plain_scalar

FOREIGN_KEYS = (*PATH_KEYS, "records")
"""Keys of sections that are not ours: documents of manifests, numbers of a profile, rows of a trace."""


def scenario_yaml(scenario: Any, folder: Path | None = None) -> str:
    """The scenario as it was resolved, with its defaults; nulls that mean nothing are left out.

    Args:
        scenario: what was simulated; its ``to_dict()`` is used.
        folder: where the text will lie. Paths become relative to it where both lie in one tree, so that the tree can be
            moved as a whole, and absolute otherwise; without a folder they are absolute.
    """
    data = {key: value for key, value in scenario.to_dict().items() if value is not None}
    lean = _without_nulls(data)
    if not _is_same(scenario, lean):
        lean = data
    return yaml.dump(
        _with_paths(lean, folder), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
    )


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: item if key in FOREIGN_KEYS else _without_nulls(item)
            for key, item in value.items()
            if item is not None
        }
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _is_same(scenario: Any, data: dict[str, Any]) -> bool:
    """Whether the data are those of the scenario, once they have been read again."""
    try:
        again = type(scenario).from_dict(data)
    except (AttributeError, ScenarioError):
        return False
    return bool(again.to_dict() == scenario.to_dict())


def _with_paths(value: Any, folder: Path | None, key: str = "") -> Any:
    if isinstance(value, Mapping) and key not in FOREIGN_KEYS:
        return {name: _with_paths(item, folder, str(name)) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_paths(item, folder, key) for item in value]
    if isinstance(value, str) and key in PATH_KEYS and not is_inline(value):
        return _path_from(folder, value)
    return value


def _path_from(folder: Path | None, path: str) -> str:
    absolute = os.path.abspath(path)
    if folder is None:
        return absolute
    try:
        shared = os.path.commonpath([folder, absolute])
    except ValueError:  # another drive
        return absolute
    return absolute if Path(shared) == Path(shared).parent else os.path.relpath(absolute, folder)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, as people do, and quotes what would be read as something else."""


_CHANGED_IN_BLOCKS = re.compile("[\r\x85\u2028\u2029]")
"""Ends of lines that YAML reads as other ones, unless they are escaped."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if _CHANGED_IN_BLOCKS.search(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    elif not isinstance(plain_scalar(text), str):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
