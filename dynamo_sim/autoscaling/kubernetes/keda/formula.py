"""Formulas over trigger names (`spec 10, 3.5`): the part of the expr language that KEDA 2.20 users write."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from dynamo_sim.autoscaling.kubernetes.keda.formula_operators import (
    ARITHMETIC,
    BIND_RIGHT,
    BOTH,
    COALESCE,
    COMPARISONS,
    EITHER,
    FUNCTIONS,
    OF_A_LIST,
    OF_A_NUMBER,
    OF_A_PREDICATE,
    OF_SEVERAL_NUMBERS,
    STRENGTHS,
    UNARY_STRENGTHS,
    Compute,
    applied,
)
from dynamo_sim.text import shown

MAX_TOKENS = 200
"""Longer formulas are refused; nobody writes them by hand."""

MAX_DEPTH = 100
"""Brackets, signs and choices inside each other; deeper nesting is refused."""

NUMBER, CONDITION, NUMBERS, CONDITIONS = "number", "condition", "list", "list of conditions"
"""Kinds of values."""

ELEMENT = "#"
"""The element that a condition such as ``{# > 1}`` is about."""

_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_]\w*)"
    r"|(\*\*|[<>=!]=|&&|\|\||\?\?|[-+*/%^<>?:(),\[\]{}#!])|(\S))"
)

_UNSUPPORTED = ("in", "true", "false", "nil", "let", "matches", "contains", "startsWith", "endsWith")


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of a formula: the kind of its value, and how to compute it."""

    kind: str
    compute: Compute


class Formula:
    """A parsed formula.

    Attributes:
        text: as written.
        names: the triggers it mentions, in order of appearance.

    Raises:
        ValueError: it does not parse, uses something that is not supported, or is no number.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        parser = _FormulaParser(text)
        node = parser.parse()
        self.names = parser.names
        self._compute = node.compute

    def __call__(self, values: Mapping[str, float | None]) -> float | None:
        """The composite value; None when every trigger that could give one has failed (``a ?? b``).

        Args:
            values: by trigger; None for one that has failed too often, which ``??`` replaces.

        Raises:
            ValueError: a division by zero, an operation on a failed trigger, or a result that is not finite.
            KeyError: a trigger without a value.
        """
        try:
            result = self._compute(values)
            value = None if result is None else float(result)
        except (ArithmeticError, ValueError) as error:
            raise ValueError(f"formula {self.text!r}: {error.args[-1]}") from error
        except TypeError:
            raise ValueError(f"formula {self.text!r}: it calculates with a trigger that has failed") from None
        if value is not None and not math.isfinite(value):
            raise ValueError(f"formula {self.text!r}: the result is {value}")
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"


class _FormulaParser:
    """Precedence climbing over the tokens of a formula."""

    def __init__(self, text: str) -> None:
        self.names: list[str] = []
        self._text = text
        self._at = 0
        self._depth = 0
        self._in_predicate = False
        self._tokens = self._split()

    def parse(self) -> _Node:
        node = self._choice()
        if self._peek() is not None:
            self._refuse(f"unexpected {self._peek()!r}")
        if node.kind != NUMBER:
            self._refuse(f"its result is a {node.kind}, not a number")
        return node

    # ------------------------------------------------------------ tokens

    def _split(self) -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        text = self._text
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            assert match is not None
            number, name, operator, other = match.groups()
            if other is not None:
                self._refuse(f"{shown(text[match.start(4) :].split()[0])} is not supported")
            kind = "number" if number else "name" if name else "operator"
            tokens.append((kind, number or name or operator))
            if len(tokens) > MAX_TOKENS:
                self._refuse(f"it has more than {MAX_TOKENS} parts")
            at = match.end()
        return tokens

    def _peek(self) -> str | None:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else None

    def _take(self, *expected: str) -> str | None:
        if self._peek() in expected and self._tokens[self._at][0] != "number":
            self._at += 1
            return self._tokens[self._at - 1][1]
        return None

    def _need(self, expected: str) -> None:
        if self._take(expected) is None:
            found = self._peek()
            self._refuse(
                f"expected {expected!r}, got {found!r}" if found else f"expected {expected!r} at the end"
            )

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(f"formula {shown(self._text)}: {why}")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse("it is nested too deeply")

    # ------------------------------------------------------------ grammar

    def _choice(self) -> _Node:
        self._deeper()
        node = self._binary(0)
        if self._take("?") is not None:
            if node.kind != CONDITION:
                self._refuse("what stands before '?' must be a comparison")
            left = self._choice()
            self._need(":")
            right = self._choice()
            if left.kind != right.kind:
                self._refuse("both sides of ':' must be of one kind")
            condition = node.compute
            node = _Node(
                left.kind,
                lambda values: left.compute(values) if condition(values) else right.compute(values),
            )
        self._depth -= 1
        return node

    def _binary(self, weakest: int) -> _Node:
        """A chain of operators that bind at least so strongly."""
        self._deeper()
        left = self._unary()
        while STRENGTHS.get(operator := self._peek() or "", 0) >= max(weakest, 1):
            self._at += 1
            strength = STRENGTHS[operator]
            right = self._binary(strength if operator in BIND_RIGHT else strength + 1)
            left = self._joined(operator, left, right)
        self._depth -= 1
        return left

    def _joined(self, operator: str, left: _Node, right: _Node) -> _Node:
        self._expect(CONDITION if operator in (*EITHER, *BOTH) else NUMBER, left, right)
        if operator in COMPARISONS and self._peek() in COMPARISONS:
            self._refuse("a comparison of comparisons is not supported; join them by &&")
        kind = NUMBER if operator in ARITHMETIC or operator == COALESCE else CONDITION
        return _Node(kind, applied(operator, left.compute, right.compute))

    def _unary(self) -> _Node:
        operator = self._take(*UNARY_STRENGTHS)
        if operator is None:
            return self._atom()
        inner = self._binary(UNARY_STRENGTHS[operator])
        if operator in ("not", "!"):
            self._expect(CONDITION, inner)
            return _Node(CONDITION, lambda values: not inner.compute(values))
        self._expect(NUMBER, inner)
        return inner if operator == "+" else _Node(NUMBER, lambda values: -inner.compute(values))

    def _atom(self) -> _Node:
        if self._take("(") is not None:
            inner = self._choice()
            self._need(")")
            return inner
        if self._take("[") is not None:
            return self._list(self._arguments("]"))
        if self._take(ELEMENT) is not None:
            if not self._in_predicate:
                self._refuse("'#' stands for an element of a list: count([a, b], {# > 1})")
            return _Node(NUMBER, lambda values: values[ELEMENT])
        if self._at >= len(self._tokens):
            self._refuse("it ends too early")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            constant = float(text)
            return _Node(NUMBER, lambda values: constant)
        if kind == "operator":
            self._refuse(f"unexpected {text!r}")
        return self._call(text) if self._take("(") is not None else self._name(text)

    def _name(self, name: str) -> _Node:
        if name in _UNSUPPORTED:
            self._refuse(f"{name!r} is not supported")
        if name in STRENGTHS:
            self._refuse(f"unexpected {name!r}")
        if name not in self.names:
            self.names.append(name)
        return _Node(NUMBER, lambda values: values[name])

    def _list(self, items: list[_Node]) -> _Node:
        kinds = {item.kind for item in items}
        if len(kinds) > 1 or not kinds <= {NUMBER, CONDITION}:
            self._refuse("a list has numbers only")
        computes = [item.compute for item in items]
        kind = CONDITIONS if kinds == {CONDITION} else NUMBERS
        return _Node(kind, lambda values: [compute(values) for compute in computes])

    def _call(self, name: str) -> _Node:
        if name not in FUNCTIONS:
            self._refuse(f"the function {name} is not supported, only {', '.join(FUNCTIONS)}")
        if name in OF_A_PREDICATE:
            return self._with_predicate(name)
        arguments = self._arguments(")")
        if name in OF_A_NUMBER:
            if len(arguments) != 1:
                self._refuse(f"{name} takes one argument")
            self._expect(NUMBER, *arguments)
            of_number, number = OF_A_NUMBER[name], arguments[0].compute
            return _Node(NUMBER, lambda values: of_number(number(values)))
        if name in OF_SEVERAL_NUMBERS and len(arguments) > 1:
            arguments = [self._list(arguments)]
        if len(arguments) != 1 or arguments[0].kind != NUMBERS:
            others = ", or at least two numbers" if name in OF_SEVERAL_NUMBERS else ""
            self._refuse(f"{name} takes a list: {name}([a, b]){others}")
        of_list, items = OF_A_LIST[name], arguments[0].compute
        return _Node(NUMBER, lambda values: of_list(items(values)))

    def _with_predicate(self, name: str) -> _Node:
        """``count([a, b], {# > 1})``, or ``count([a > 1, b > 2])``."""
        collect, kind = OF_A_PREDICATE[name], NUMBER if name == "count" else CONDITION
        items = self._choice()
        if self._take(",") is None:
            self._need(")")
            if items.kind != CONDITIONS:
                self._refuse(f"{name} takes a list and a condition: {name}([a, b], {{# > 1}})")
            return _Node(kind, lambda values: collect(items.compute(values)))
        self._expect(NUMBERS, items)
        test = self._predicate().compute
        return _Node(
            kind,
            lambda values: collect([test({**values, ELEMENT: item}) for item in items.compute(values)]),
        )

    def _predicate(self) -> _Node:
        if self._in_predicate:
            self._refuse("a condition on elements inside another one is not supported")
        self._in_predicate = True
        braces = self._take("{") is not None
        condition = self._choice()
        if braces:
            self._need("}")
        self._need(")")
        self._in_predicate = False
        self._expect(CONDITION, condition)
        return condition

    def _arguments(self, closing: str) -> list[_Node]:
        arguments = [self._choice()]
        while self._take(",") is not None:
            arguments.append(self._choice())
        self._need(closing)
        return arguments

    def _expect(self, kind: str, *nodes: _Node) -> None:
        for node in nodes:
            if node.kind != kind:
                self._refuse(f"a {node.kind} stands where a {kind} is needed")
