"""The variants that `compare` runs: every combination of the values of ``--vary``, with a short name for each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from dynamo_sim.errors import ScenarioError
from dynamo_sim.text import cut

if TYPE_CHECKING:
    from dynamo_sim.scenario import Scenario
    from dynamo_sim.scenario.base import Path

MAX_RUNS = 64


@dataclass(frozen=True)
class Axis:
    """One ``--vary``: a key, its values as they were written, and what to call each."""

    key: str
    values: list[str]
    names: list[str]


class Variant(NamedTuple):
    """One run of a comparison.

    Attributes:
        label: what to call it.
        file: the file of its scenario.
        scenario: what is run.
        varied: the values of ``--vary`` by their keys, as they were written.
    """

    label: str
    file: str
    scenario: Scenario
    varied: dict[str, str]


def variants(files: Sequence[str], overrides: Sequence[str], varied: Sequence[str]) -> Iterator[Variant]:
    """All files with all combinations of values, the last ``--vary`` changing fastest.

    Raises:
        ScenarioError: a scenario is wrong, or what is varied is.
    """
    axes = [_axis(text) for text in varied]
    count = len(files) * math.prod(len(axis.values) for axis in axes)
    if count > MAX_RUNS:
        raise ScenarioError(f"--vary: {count} runs are too many to read side by side; at most {MAX_RUNS}")
    _check(axes, overrides)
    keys = _short_keys([axis.key for axis in axes])
    choices = [
        list(zip(axes, positions, strict=True))
        for positions in product(*(range(len(axis.values)) for axis in axes))
    ]
    loaded = [[_scenario(file, overrides, choice) for choice in choices] for file in files]
    names = [of_file[0].name for of_file in loaded]
    for file, name, of_file in zip(files, names, loaded, strict=True):
        called = [name if names.count(name) == 1 else file] if len(files) > 1 or not axes else []
        for choice, scenario in zip(choices, of_file, strict=True):
            short = [f"{key}={axis.names[at]}" for key, (axis, at) in zip(keys, choice, strict=True)]
            yield Variant(
                " ".join([*called, *short]),
                file,
                scenario.with_(**{"report.passes": False}),
                {axis.key: axis.values[at] for axis, at in choice},
            )


def _scenario(file: str, overrides: Sequence[str], choice: Sequence[tuple[Axis, int]]) -> Scenario:
    from dynamo_sim.cli.loading import load_and_build

    return load_and_build(file, overrides, [f"{axis.key}={axis.values[at]}" for axis, at in choice])[0]


NOT_OF_THE_RUN = ("name", "report")
"""Sections on which no figure depends."""


def refuse_equal_runs(chosen: Sequence[Variant]) -> None:
    """Refuse variants that differ only in how they are written, or in keys without effect: equal columns mislead.

    Raises:
        ScenarioError: two of them would be the same run; the keys are named.
    """
    from dynamo_sim.scenario.effects import effective, without_effect

    first: dict[str, Variant] = {}
    for variant in chosen:
        run = {key: value for key, value in effective(variant.scenario).items() if key not in NOT_OF_THE_RUN}
        twin = first.setdefault(json.dumps(run, sort_keys=True), variant)
        if twin is variant:
            continue
        idle = dict([*without_effect(twin.scenario), *without_effect(variant.scenario)])
        option = "--vary " if variant.varied else ""
        raise ScenarioError(
            f"{option.strip() or 'compare'}: {cut(twin.label)} and {cut(variant.label)} would be the same run",
            *(f"{option}{key}: {reason}" for key, reason in idle.items()),
        )


def _axis(text: str) -> Axis:
    key, equals, values = text.partition("=")
    if not equals or not key or not values:
        raise ScenarioError(f"--vary {cut(text)}: must be KEY=A,B,..., like fleet.workers=4,6,8")
    parts = _split(values)
    return Axis(key, parts, _names(parts))


def _check(axes: Sequence[Axis], overrides: Sequence[str]) -> None:
    """Refuse runs that would be the same, although their names differ."""
    from dynamo_sim.scenario import dotted_keys

    earlier: list[tuple[str, Path]] = []
    for text in overrides:
        key = text.partition("=")[0]
        earlier.append((f"--set {cut(key)}", dotted_keys.parse(key)))
    for axis in axes:
        path = dotted_keys.parse(axis.key)
        for option, other in earlier:
            if other[: len(path)] == path:
                raise ScenarioError(
                    f"--vary {cut(axis.key)}: replaces what {option} gives; give all values of a key in one --vary"
                )
        earlier.append((f"--vary {cut(axis.key)}", path))
        for value in axis.values:
            if axis.values.count(value) > 1:
                raise ScenarioError(f"--vary {cut(axis.key)}: {cut(value)} is there twice")


def _short_keys(keys: Sequence[str]) -> list[str]:
    """``workers`` for ``fleet.workers``, unless another key ends alike."""
    lasts = [key.rpartition(".")[2] for key in keys]
    return [key if lasts.count(last) > 1 else last for key, last in zip(keys, lasts, strict=True)]


def _names(values: list[str]) -> list[str]:
    """What tells the values apart: of sections the kind and what differs, of paths the file."""
    for names in (_section_names(values), [PurePath(value).name for value in values]):
        if (
            names
            and all(names)
            and len(set(names)) == len(values)
            and any("/" in v or "{" in v for v in values)
        ):
            return [cut(name) for name in names]
    cuts = [cut(value) for value in values]
    return cuts if len(set(cuts)) == len(set(values)) else list(values)


def _section_names(values: list[str]) -> list[str]:
    """``target: 5`` for ``{kind: hpa, target: 5, window_s: 60}`` beside one with another target; ``hpa`` beside
    sections of other kinds."""
    from dynamo_sim.scenario.yaml_source import read_yaml

    try:
        sections = [read_yaml(value, "--vary").data for value in values]
    except ScenarioError:  # said where the value is used
        return []
    if not all(isinstance(section, dict) for section in sections):
        return []
    kinds = [str(section.get("kind", "")) for section in sections]
    if len(set(kinds)) == len(kinds):
        return kinds
    same = [
        key
        for key, value in sections[0].items()
        if all(key in other and other[key] == value for other in sections)
    ]
    return [
        ", ".join(
            str(value) if key == "kind" else f"{key}: {value}"
            for key, value in section.items()
            if key not in same
        )
        for section in sections
    ]


def _split(values: str) -> list[str]:
    """Cut at commas that lie outside brackets, braces and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in values:
        if letter == quote:
            quote = ""
        elif not quote and letter in "\"'":
            quote = letter
        elif not quote:
            depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
