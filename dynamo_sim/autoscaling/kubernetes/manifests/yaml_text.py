"""The documents of a pasted text, with Kubernetes' idea of YAML: no dates, no duplicate keys (`spec 10, 2.1`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.yaml_source import HALF_A_LETTER, MAX_DEPTH
from dynamo_sim.text import with_whole_letters

MAX_MERGED_KEYS = 100_000
"""Keys that ``<<`` may bring into mappings; beyond it a small file would fill the memory."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Where a mapping and its keys were written, counted from 1.

    Attributes:
        mapping: itself, so that nothing else gets its identity.
        first: its own line.
        keys: the line of each key.
    """

    mapping: dict[Any, Any]
    first: int
    keys: dict[Any, int]


def read_documents(text: str, place: str, lines: dict[int, Lines] | None = None) -> list[Any]:
    """All documents of a text; an empty one is None.

    Args:
        text: YAML or JSON.
        place: how messages call the text.
        lines: gets the lines of every mapping, by its identity.

    Raises:
        ScenarioError: it is no YAML, or a template; one line.
    """
    template = any("{{" in line for line in text.split("\n") if not line.lstrip().startswith("#"))
    if template:
        raise ScenarioError(f"{place}: is a template with {{{{ }}}}; render it first (helm template)")
    try:
        return list(_all(_Loader(text, {} if lines is None else lines)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = "" if mark is None else f":{mark.line + 1}"
        raise ScenarioError(f"{place}{at}: is no YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ScenarioError(
            f"{place}:{line}: is no text: it has a character that YAML does not allow"
        ) from None
    except RecursionError:
        raise ScenarioError(f"{place}: is nested too deeply") from None


def _all(loader: _Loader) -> Iterator[Any]:
    try:
        while loader.check_data():
            yield loader.get_data()
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """Takes dates for texts and refuses keys that are there twice."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as its parents declare it
        first: [(tag, form) for tag, form in entries if not tag.endswith(":timestamp")]
        for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: str, lines: dict[int, Lines]) -> None:
        super().__init__(stream)
        self._lines = lines
        self._depth = 0
        self._merged = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """A node, unless it is inside of too many others."""
        self._depth += 1
        if self._depth > MAX_DEPTH + 1:
            raise RecursionError
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_scalar_node(self, anchor: dict[str, Any]) -> yaml.ScalarNode:
        """A text or a number; half of a letter is none."""
        node = super().compose_scalar_node(anchor)
        text = with_whole_letters(node.value)
        if text is None:
            raise yaml.constructor.ConstructorError(None, None, HALF_A_LETTER, node.start_mark)
        node.value = text
        return node

    def construct_noted_mapping(self, node: yaml.MappingNode) -> Iterator[dict[Any, Any]]:
        """A mapping, whose lines are kept."""
        data: dict[Any, Any] = {}
        yield data
        data.update(self.construct_mapping(node))
        keys = {self.construct_object(key): key.start_mark.line + 1 for key, _ in node.value}
        self._lines[id(data)] = Lines(data, node.start_mark.line + 1, keys)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        first: dict[str, yaml.Node] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":merge"):
                continue
            if key.value in first:
                line = first[key.value].start_mark.line + 1
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key {key.value!r}; the first is on line {line}", key.start_mark
                )
            first[key.value] = key
        written = len(node.value)
        super().flatten_mapping(node)
        self._merged += max(0, len(node.value) - written)
        if self._merged > MAX_MERGED_KEYS:
            raise yaml.constructor.ConstructorError(
                None, None, f"<< brings in more than {MAX_MERGED_KEYS:,} keys", node.start_mark
            )

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        """A number; one of thousands of digits is none, and 1:30 is a text."""
        if ":" in node.value:
            return node.value
        try:
            whole = node.tag.endswith(":int")
            return self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)
        except ValueError:
            raise yaml.constructor.ConstructorError(
                None, None, f"no number: {node.value[:40]!r}", node.start_mark
            ) from None


for kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{kind}", _Loader.construct_number)
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_noted_mapping)
