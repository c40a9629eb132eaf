"""The part of PromQL that scaling queries are written in, as a tree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from dynamo_sim.autoscaling.kubernetes.manifests.section import duration_s

AGGREGATIONS = ("sum", "avg", "max", "min")
FUNCTIONS = ("rate", "increase", "avg_over_time", "histogram_quantile")

_TOKEN = re.compile(
    r"""(?:
    (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\w:])|\.\d+)
  | (?P<name>[A-Za-z_:][\w:]*)
  | (?P<labels>\{(?:[^{}"']|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')*\})
  | (?P<range>\[[^\[\]]*\])
  | (?P<operator>==|!=|<=|>=|[-+*/%^<>@(),])
  | (?P<other>\S)
    )""",
    re.VERBOSE,
)

_BETWEEN = re.compile(r"(?:\s|\#[^\n]*)*")
"""Spaces and comments."""

MAX_TOKENS = 200
"""Longer queries are refused; nobody writes them by hand."""

MAX_LETTERS = 10_000
"""Of a query, which the label selectors may make long."""

MAX_DEPTH = 50
"""Brackets and functions inside each other."""


class Unmapped(ValueError):
    """A construct of PromQL that is not understood."""


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Selector:
    """A metric with its label selectors as written, and its range in seconds."""

    name: str
    labels: str = ""
    range_s: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """``grouping`` is ``by``, ``without`` or empty."""

    operator: str
    inner: Tree
    grouping: str = ""
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Tree
    right: Tree


@dataclass(frozen=True, slots=True)
class OrZero:
    """``inner or vector(0)``: 0 where there is no data."""

    inner: Tree


Tree = Number | Selector | Call | Aggregation | Binary | OrZero


def parse_tree(query: str) -> Tree:
    """The tree of a query.

    Raises:
        Unmapped: it does not parse, or uses something that is not understood.
    """
    return _QueryParser(query).parse()


def _end(match: re.Match[str] | None) -> int:
    assert match is not None
    return match.end()


class _QueryParser:
    def __init__(self, query: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        self._depth = 0
        if len(query) > MAX_LETTERS:
            raise Unmapped(f"a query of more than {MAX_LETTERS:,} letters is not understood")
        at = _end(_BETWEEN.match(query))
        while at < len(query):
            match = _TOKEN.match(query, at)
            assert match is not None and match.lastgroup is not None
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            if len(self._tokens) > MAX_TOKENS:
                raise Unmapped(f"a query of more than {MAX_TOKENS} parts is not understood")
            at = _end(_BETWEEN.match(query, match.end()))
        self._at = 0

    def parse(self) -> Tree:
        tree = self._whole()
        if self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            self._refuse(text if kind == "name" else repr(text))
        return tree

    def _refuse(self, what: str) -> NoReturn:
        raise Unmapped(f"{what} is not understood")

    def _peek(self, ahead: int = 0) -> tuple[str, str]:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ("end", "the end of the query")

    def _take(self, *texts: str) -> str | None:
        kind, text = self._peek()
        if kind in ("operator", "name") and text in texts:
            self._at += 1
            return text
        return None

    def _need(self, text: str) -> None:
        if self._take(text) is None:
            raise Unmapped(f"expected {text!r}, got {self._peek()[1]}")

    def _whole(self) -> Tree:
        """A sum, and what is there instead of no data."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unmapped("a query that is nested so deeply is not understood")
        tree = self._sum()
        while self._take("or") is not None:
            words = [self._peek(ahead)[1] for ahead in range(4)]
            if words[:2] != ["vector", "("] or self._peek(2)[0] != "number" or words[3] != ")":
                self._refuse("or with anything but vector(0)")
            if float(words[2]) != 0:
                self._refuse(f"or vector({words[2]}) with another number than 0")
            self._at += 4
            tree = OrZero(tree)
        self._depth -= 1
        return tree

    def _sum(self) -> Tree:
        left = self._product()
        while (operator := self._take("+", "-")) is not None:
            left = Binary(operator, left, self._product())
        return left

    def _product(self) -> Tree:
        left = self._atom()
        while (operator := self._take("*", "/")) is not None:
            if self._peek()[1] in ("on", "ignoring"):
                self._refuse(self._peek()[1])
            left = Binary(operator, left, self._atom())
        return left

    def _atom(self) -> Tree:
        kind, text = self._peek()
        if kind == "operator" and text == "(":
            self._at += 1
            inner = self._whole()
            self._need(")")
            self._no_suffix()
            return inner
        if kind == "operator" and text == "-" and self._peek(1)[0] == "number":
            self._at += 2
            return Number(-float(self._tokens[self._at - 1][1]))
        if kind == "number":
            self._at += 1
            return Number(float(text))
        if kind == "labels":
            raise Unmapped("a selector without a metric name is not understood")
        if kind != "name":
            self._refuse(text if kind == "end" else repr(text))
        self._at += 1
        following = self._peek()[1]
        if text in AGGREGATIONS and following in ("(", "by", "without"):
            return self._aggregation(text)
        if following == "(":
            if text not in FUNCTIONS:
                self._refuse(f"{text}()")
            arguments = self._arguments()
            self._no_suffix()
            return Call(text, arguments)
        return self._selector(text)

    def _aggregation(self, operator: str) -> Tree:
        grouping, labels = self._grouping()
        arguments = self._arguments()
        if len(arguments) != 1:
            self._refuse(f"{operator}() of {len(arguments)} arguments")
        if not grouping:
            grouping, labels = self._grouping()
        self._no_suffix()
        return Aggregation(operator, arguments[0], grouping, labels)

    def _grouping(self) -> tuple[str, tuple[str, ...]]:
        grouping = self._take("by", "without")
        if grouping is None:
            return "", ()
        self._need("(")
        labels = []
        while self._peek()[0] == "name":
            labels.append(self._peek()[1])
            self._at += 1
            if self._take(",") is None:
                break
        self._need(")")
        return grouping, tuple(labels)

    def _arguments(self) -> tuple[Tree, ...]:
        self._need("(")
        arguments = [self._whole()]
        while self._take(",") is not None:
            arguments.append(self._whole())
        self._need(")")
        return tuple(arguments)

    def _selector(self, name: str) -> Tree:
        labels, range_s = "", None
        if self._peek()[0] == "labels":
            labels = self._peek()[1]
            self._at += 1
        if self._peek()[0] == "range":
            text = self._peek()[1][1:-1].strip()
            range_s = duration_s(text)
            if range_s is None or range_s <= 0:
                what = "a subquery" if ":" in text else "a range"
                self._refuse(f"{what} [{text}]")
            self._at += 1
        self._no_suffix()
        return Selector(name, labels, range_s)

    def _no_suffix(self) -> None:
        kind, text = self._peek()
        if kind == "range":
            self._refuse(f"a subquery {text}")
        if text in ("offset", "@", "and", "unless", "bool", "==", "!=", "<", ">", "<=", ">=", "%", "^"):
            self._refuse(text if text.isalpha() else repr(text))
