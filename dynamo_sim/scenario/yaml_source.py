"""YAML text as plain data, with the place of every key and value.

The scalars follow YAML 1.2: `yes`, `1:30` and `2024-01-01` are texts, `010` is ten, `1e3` is a number.
Duplicate keys are refused.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import yaml

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.base import Path, dotted
from dynamo_sim.text import with_whole_letters

MAX_ALIAS_EXPANSION = 100_000
"""Values that may come out of aliases; beyond it a small file would fill the memory."""

MAX_DEPTH = 50
"""Lists and mappings inside each other; what is deeper could not be saved again."""

HALF_A_LETTER = "found half of a surrogate pair, which is no letter"

_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULL = {"", "~", "null", "Null", "NULL"}
_INT = re.compile(r"[-+]?[0-9]+(_[0-9]+)*")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(_[0-9]+)*(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+]?)\.(inf|Inf|INF)")
_NOT_A_NUMBER = {".nan", ".NaN", ".NAN"}

_TAGS = {
    f"tag:yaml.org,2002:{kind}"
    for kind in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge", "value")
}

_TEXT = "tag:yaml.org,2002:str"


@dataclass
class YamlSource:
    """Plain data, and where its parts were written.

    Attributes:
        data: mappings, lists, texts, numbers, booleans and None.
        keys: places of the keys, by path.
        values: places of the values, by path.
    """

    data: Any = None
    keys: dict[Path, str] = field(default_factory=dict)
    values: dict[Path, str] = field(default_factory=dict)

    def place_of(self, path: Path, name: str, about_key: bool = False) -> str:
        """Where a value of the text called ``name``, or its key, was written, or the nearest section around it."""
        places = self.keys if about_key else self.values
        while path:
            if path in places:
                return places[path]
            path, places = path[:-1], self.keys
        return f"{name}:1:1"


def read_yaml(text: str, name: str) -> YamlSource:
    """Read one YAML document; places are ``name:line:column``, counted from 1.

    Raises:
        ScenarioError: the text is not YAML, has duplicate keys, tags or endless aliases.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return _YamlReader(name).read(node)
    except yaml.MarkedYAMLError as error:
        raise ScenarioError(_not_yaml(error, name)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ScenarioError(
            f"{name}:{line}: not a text file: it has a character that YAML does not allow"
        ) from None
    except RecursionError:
        raise ScenarioError(f"{name}: nested too deeply") from None


def _not_yaml(error: yaml.MarkedYAMLError, name: str) -> str:
    problem = error.problem or error.context or "cannot be read"
    if "'\\t'" in problem:
        problem = "found a tab; indent with spaces"
    elif "but found another document" in problem:
        problem = "found a second document; a scenario is one document, without ---"
    mark = error.problem_mark or error.context_mark
    place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
    return f"{place}: not valid YAML: {problem}"


class _YamlReader:
    """Turns nodes into data, noting places."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._source = YamlSource()
        self._problems: list[str] = []
        self._seen: set[int] = set()
        self._open: set[int] = set()
        self._expanded = 0

    def read(self, node: yaml.Node | None) -> YamlSource:
        if node is not None:
            self._source.data = self._value(node, (), aliased=False)
        if self._problems:
            raise ScenarioError(*self._problems)
        return self._source

    def _place(self, node: yaml.Node) -> str:
        return f"{self._name}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"

    def _refuse(self, node: yaml.Node, path: Path, problem: str) -> None:
        where = f"{dotted(path)}: " if path else ""
        self._problems.append(f"{self._place(node)}: {where}{problem}")

    def _value(self, node: yaml.Node, path: Path, aliased: bool) -> Any:
        self._source.values[path] = self._place(node)
        if len(path) > MAX_DEPTH:
            raise ScenarioError(f"{self._place(node)}: nested too deeply, more than {MAX_DEPTH} levels")
        if node.tag not in _TAGS:
            self._refuse(node, path, f"the tag {node.tag!r} is not allowed")
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        aliased = aliased or id(node) in self._seen
        if id(node) in self._open:
            raise ScenarioError(f"{self._place(node)}: {dotted(path)}: contains itself")
        self._seen.add(id(node))
        self._open.add(id(node))
        if aliased:
            self._expanded += len(node.value)
            if self._expanded > MAX_ALIAS_EXPANSION:
                raise ScenarioError(
                    f"{self._place(node)}: aliases repeat more than {MAX_ALIAS_EXPANSION} values"
                )
        value: Any
        if isinstance(node, yaml.SequenceNode):
            value = [self._value(item, (*path, index), aliased) for index, item in enumerate(node.value)]
        else:
            value = self._mapping(node, path, aliased)
        self._open.remove(id(node))
        return value

    def _mapping(self, node: yaml.Node, path: Path, aliased: bool) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key is None:
                continue
            below = (*path, key)
            if key in data:
                line = self._source.keys[below].rsplit(":", 2)[1]
                self._problems.append(
                    f"{self._place(key_node)}: {dotted(below)}: duplicate key; the first is on line {line}"
                )
                continue
            self._source.keys[below] = self._place(key_node)
            data[key] = self._value(value_node, below, aliased)
        return data

    def _key(self, node: yaml.Node, path: Path) -> str | None:
        key: Hashable = with_whole_letters(node.value) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(key, str) or key == "":
            self._refuse(node, path, "found a key that is not a word")
            return None
        return key

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        text = with_whole_letters(node.value)
        if text is None:
            self._refuse(node, path, HALF_A_LETTER)
            return None
        if node.style is not None or (node.tag == _TEXT and _has_tag(node)):
            return text
        try:
            return plain_scalar(text)
        except ValueError:
            self._refuse(node, path, "the number is too long")
            return None


def _has_tag(node: yaml.ScalarNode) -> bool:
    """Whether a tag stands before an unquoted word: its mark starts at the tag."""
    mark = node.start_mark
    return mark.buffer is not None and mark.buffer[mark.pointer] == "!"


def plain_scalar(text: str) -> Any:
    """The value of an unquoted word.

    Raises:
        ValueError: a whole number of thousands of digits.
    """
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    infinite = _INFINITE.fullmatch(text)
    if infinite:
        return float(infinite[1] + "inf")
    if text in _NOT_A_NUMBER:
        return float("nan")
    return text
