"""Reading a manifest key by key, so that nothing in it is passed over in silence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from dynamo_sim.autoscaling.kubernetes.hpa.quantity import quantity_milli
from dynamo_sim.autoscaling.kubernetes.manifests.yaml_text import Lines
from dynamo_sim.errors import ScenarioError
from dynamo_sim.text import shown

MAX_INTEGER = 2**31 - 1
"""Kubernetes counts replicas and seconds in 32 bits."""

MAX_LIST_DEPTH = 20
"""Lists inside Lists."""

MAX_DOCUMENTS = 10_000
"""Documents of one manifest, Lists unpacked."""

MAX_ENTRIES = 100
"""Entries of a list, such as triggers; nobody writes more by hand."""

MAX_UNKNOWN_KEYS = 20
"""Unknown keys of one section that are reported one by one."""

MAX_NUMBER = 1e15
"""What is larger than any number of a manifest can sensibly be."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w|y)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}

MAX_DURATION_S = 9.2e9
"""The 292 years a duration can hold there."""


@dataclass
class Findings:
    """What was found wrong, and what cannot be honoured.

    Attributes:
        problems, warnings: one line each.
        file: how messages call the file; line numbers stand behind it.
        lines: where each mapping of it was written, by identity.
    """

    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    file: str = ""
    lines: Mapping[int, Lines] = field(default_factory=dict)

    def refuse(self) -> None:
        """Raise when there are problems.

        Raises:
            ScenarioError: all of them.
        """
        if self.problems:
            raise ScenarioError(*self.problems)


class Section:
    """A mapping of a manifest and where it stands.

    Every reading method notes a problem and answers with its default when the value is not what it should be.

    Args:
        data: the mapping, or None for an empty one.
        place: where it stands, for messages.
        findings: gets what is found.
        line: where it was written, if it does not know that itself.
    """

    def __init__(self, data: Any, place: str, findings: Findings, line: int | None = None) -> None:
        self.place = place
        self.findings = findings
        self._lines = findings.lines.get(id(data))
        self._first = line if self._lines is None else self._lines.first
        self._known: set[str] = set()
        self._readable = True
        if data is None:
            data = {}
        if not isinstance(data, Mapping):
            self.problem("", f"must be a mapping, got {shown(data)}")
            self._readable = False
            data = {}
        self.data: Mapping[str, Any] = data

    # ------------------------------------------------------------ findings

    def at(self, key: str | int) -> str:
        """Where a key of this section stands."""
        if key == "":
            return self.place.removesuffix(": ")
        joint = "" if isinstance(key, int) or self.place.endswith(": ") else "."
        return f"{self.place}[{key}]" if isinstance(key, int) else f"{self.place}{joint}{key}"

    def line(self, key: str | int = "") -> int | None:
        """The line of a key, or of the section where the key is not there; None where it is not known."""
        return self._first if self._lines is None else self._lines.keys.get(key, self._first)

    def _reported_at(self, key: str | int) -> str:
        """Where a key stands, with its line behind the name of the file."""
        place, file, line = self.at(key), self.findings.file, self.line(key)
        if not file or line is None or not place.startswith(file):
            return place
        return f"{file}:{line}{place.removeprefix(file)}"

    def problem(self, key: str | int, text: str) -> None:
        """Note something that is wrong; of what is no mapping at all nothing more is said."""
        if self._readable:
            self.findings.problems.append(f"{self._reported_at(key)}: {text}")

    def warn(self, key: str | int, text: str) -> None:
        """Note something that is accepted but has no effect, or not the one it has in a cluster."""
        self.findings.warnings.append(f"{self._reported_at(key)}: {text}")

    def ignore(self, *keys: str, why: str | None = None) -> None:
        """Accept keys; with ``why`` those that are there are warned about."""
        for key in keys:
            if self.has(key) and why is not None:
                self.warn(key, why)

    def finish(self) -> None:
        """Refuse keys nobody has asked for."""
        unknown = [key for key in self.data if key not in self._known]
        for key in unknown[:MAX_UNKNOWN_KEYS]:
            near = get_close_matches(str(key), self._known, n=1)
            self.problem(str(key), "unknown key" + (f"; did you mean {near[0]!r}?" if near else ""))
        if len(unknown) > MAX_UNKNOWN_KEYS:
            self.problem("", f"has {len(unknown) - MAX_UNKNOWN_KEYS:,} more unknown keys")

    def ignore_rest(self, why: str) -> None:
        """Warn about keys nobody has asked for."""
        for key in [key for key in self.data if key not in self._known][:MAX_UNKNOWN_KEYS]:
            near = get_close_matches(str(key), self._known, n=1)
            self.warn(str(key), f"unknown key; {why}" + (f" (did you mean {near[0]!r}?)" if near else ""))

    # ------------------------------------------------------------ values

    def has(self, key: str) -> bool:
        """Whether the key is there and not null."""
        self._known.add(key)
        return self.data.get(key) is not None

    def knows(self, key: str) -> bool:
        """Whether somebody has asked for the key."""
        return key in self._known

    def get(self, key: str, default: Any = None) -> Any:
        """The value as it is."""
        return self.data[key] if self.has(key) else default

    def section(self, key: str) -> Section | None:
        """A mapping inside; None when it is not there. An empty one is there."""
        if key in self.data and self.data[key] is not None:
            self._known.add(key)
            return Section(self.data[key], self.at(key), self.findings, self.line(key))
        self._known.add(key)
        return None

    def sections(self, key: str) -> list[Section]:
        """The mappings of a list inside."""
        found = self.get(key, [])
        if not isinstance(found, list):
            self.problem(key, f"must be a list, got {shown(found)}")
            return []
        if len(found) > MAX_ENTRIES:
            self.problem(key, f"has {len(found):,} entries; at most {MAX_ENTRIES} are read")
            return []
        return [
            Section(item, f"{self.at(key)}[{index}]", self.findings, self.line(key))
            for index, item in enumerate(found)
        ]

    def text(self, key: str, default: str = "", choices: tuple[str, ...] = ()) -> str:
        """A text, one of ``choices`` if there are any."""
        value = self.get(key, default)
        if not isinstance(value, str):
            self.problem(key, f"must be a text, got {shown(value)}")
            return default
        if choices and value not in choices and value != default:
            self.problem(key, f"must be one of {', '.join(choices)}, got {value!r}")
            return default
        return value

    def required(self, key: str, choices: tuple[str, ...] = ()) -> str:
        """A text that must be there; empty, with a problem noted, when it is not."""
        if not self.has(key) or self.data[key] == "":
            self.problem(key, "is missing")
            return ""
        return self.text(key, "", choices)

    def integer(self, key: str, default: int, least: int | None = None, quoted: bool = False) -> int:
        """A whole number from ``least`` to `MAX_INTEGER`; ``quoted``: written as a text, as in an annotation."""
        value = self.number(key, default, least, quoted)
        if value != int(value):
            self.problem(key, f"must be a whole number, got {shown(self.data.get(key))}")
            return default
        if value > MAX_INTEGER:
            self.problem(key, f"must be at most {MAX_INTEGER}, got {shown(self.data.get(key))}")
            return default
        return int(value)

    def number(self, key: str, default: float, least: float | None = None, quoted: bool = False) -> float:
        """A finite number from ``least``."""
        value = self.get(key, default)
        if quoted and isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                self.problem(key, f"must be a number, got {shown(value)}")
                return default
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            self.problem(key, f"must be a number, got {shown(self.data.get(key))}")
            return default
        if abs(value) > MAX_NUMBER:
            self.problem(key, f"too large a number: {shown(self.data.get(key))}")
            return default
        if least is not None and value < least:
            self.problem(key, f"must be at least {least:g}, got {value:g}")
            return default
        return value

    def boolean(self, key: str, default: bool, quoted: bool = False) -> bool:
        """True or false."""
        value = self.get(key, default)
        if quoted and isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            self.problem(key, f"must be true or false, got {shown(value)}")
            return default
        return value

    def milli(self, key: str) -> int | None:
        """A quantity above 0 in thousandths; None, with a problem noted, when it is missing or no quantity."""
        if not self.has(key):
            self.problem(key, "is missing")
            return None
        try:
            found = quantity_milli(self.get(key))
        except ValueError as error:
            self.problem(key, str(error))
            return None
        if found <= 0:
            self.problem(key, f"must be above 0, got {self.get(key)!r}")
            return None
        return found

    def seconds(self, key: str, default: float) -> float:
        """A duration such as ``60s`` or ``1m30s``."""
        value = self.get(key)
        if value is None:
            return default
        found = duration_s(value) if isinstance(value, str) else None
        if found is None:
            self.problem(key, f"must be a duration such as 60s or 1m30s, got {shown(value)}")
            return default
        return found


def duration_s(text: str) -> float | None:
    """Seconds of a duration such as ``1m30s``; None when it is none, or endless."""
    if text == "0":
        return 0.0
    parts = list(_DURATION.finditer(text))
    if not parts or "".join(part.group() for part in parts) != text:
        return None
    seconds = sum(float(part[1]) * _SECONDS[part[2]] for part in parts)
    return seconds if seconds <= MAX_DURATION_S else None


def unpacked(documents: Iterable[Any], place: str) -> list[Any]:
    """Documents, with the items of a ``List`` in its place; a list that contains itself is left out.

    Raises:
        ScenarioError: Lists in Lists without end, or more documents than a file can sensibly have.
    """
    found: list[Any] = []
    visits = 0  # of Lists, too, which may hold nothing

    def unpack(data: Any, around: tuple[int, ...]) -> None:
        nonlocal visits
        visits += 1
        if visits > MAX_DOCUMENTS:
            raise ScenarioError(f"{place}: more than {MAX_DOCUMENTS:,} documents are not read")
        if not isinstance(data, Mapping) or data.get("kind") != "List":
            found.append(data)
        elif len(around) > MAX_LIST_DEPTH:
            raise ScenarioError(f"{place}: Lists in more than {MAX_LIST_DEPTH} Lists are not read")
        elif id(data) not in around:
            items = data.get("items") or ()
            if not isinstance(items, list | tuple):
                raise ScenarioError(f"{place}: the items of a List must be a list, got {shown(items)}")
            for item in items:
                unpack(item, (*around, id(data)))

    for document in documents:
        unpack(document, ())
    return found
