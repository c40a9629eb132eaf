"""Formulas over trigger names (`spec 10, 3.5`): arithmetic, comparison, ``? :`` and a few functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from dynamo_sim.shown import shown

MOST_TOKENS = 200
"""Longer formulas are refused; nobody writes them by hand."""

Values = Mapping[str, float]
_Compute = Callable[[Values], Any]
_Node = tuple[str, _Compute]

_TOKEN = re.compile(
    r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_]\w*)|(\*\*|[<>=!]=|[-+*/%^<>?:(),\[\]])|(\S))"
)

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": math.fmod,
}
_ON_NUMBERS: dict[str, tuple[int, Callable[..., float]]] = {
    "min": (2, min),
    "max": (2, max),
    "abs": (1, abs),
    "ceil": (1, math.ceil),
    "floor": (1, math.floor),
}
_ON_LISTS: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "avg": lambda values: sum(values) / len(values),
}


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
        self.names: list[str] = []
        self._tokens = self._split(text)
        self._at = 0
        if len(self._tokens) > MOST_TOKENS:
            self._refuse(f"it has more than {MOST_TOKENS} parts")
        kind, self._compute = self._choice()
        if self._peek() is not None:
            self._refuse(f"unexpected {self._peek()!r}")
        if kind != "number":
            self._refuse(f"its result is a {kind}, not a number")

    def __call__(self, values: Values) -> float:
        """The composite value.

        Raises:
            ValueError: a division by zero, or a result that is not finite.
            KeyError: a trigger without a value.
        """
        try:
            result = float(self._compute(values))
        except (ArithmeticError, ValueError) as error:
            raise ValueError(f"formula {self.text!r}: {error.args[-1]}") from error
        if not math.isfinite(result):
            raise ValueError(f"formula {self.text!r}: the result is {result}")
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"

    # ------------------------------------------------------------ tokens

    def _split(self, text: str) -> list[tuple[str, str]]:
        tokens = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            assert match is not None
            number, name, operator, other = match.groups()
            if other is not None:
                self._refuse(f"{text[match.start(4) :].split()[0]!r} is not supported")
            tokens.append(
                ("number", number) if number else ("name", name) if name else ("operator", operator)
            )
            at = match.end()
        return tokens

    def _peek(self) -> str | None:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else None

    def _take(self, *wanted: str) -> str | None:
        if self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            if kind == "operator" and text in wanted:
                self._at += 1
                return text
        return None

    def _need(self, wanted: str) -> None:
        if self._take(wanted) is None:
            self._refuse(
                f"expected {wanted!r}, got {self._peek()!r}"
                if self._peek()
                else f"expected {wanted!r} at the end"
            )

    def _refuse(self, why: str) -> None:
        raise ValueError(f"formula {shown(self.text)}: {why}")

    # ------------------------------------------------------------ grammar, loosest binding first

    def _choice(self) -> _Node:
        kind, condition = self._comparison()
        if self._take("?") is None:
            return kind, condition
        if kind != "condition":
            self._refuse("what stands before '?' must be a comparison")
        left_kind, left = self._choice()
        self._need(":")
        right_kind, right = self._choice()
        if left_kind != right_kind:
            self._refuse("both sides of ':' must be of one kind")
        return left_kind, lambda values: left(values) if condition(values) else right(values)

    def _comparison(self) -> _Node:
        kind, left = self._sum()
        operator = self._take(*_COMPARE)
        if operator is None:
            return kind, left
        right_kind, right = self._sum()
        self._numbers(kind, right_kind)
        compare = _COMPARE[operator]
        return "condition", lambda values: compare(left(values), right(values))

    def _sum(self) -> _Node:
        return self._chain(self._product, "+", "-")

    def _product(self) -> _Node:
        return self._chain(self._sign, "*", "/", "%")

    def _chain(self, part: Callable[[], _Node], *operators: str) -> _Node:
        kind, left = part()
        while (operator := self._take(*operators)) is not None:
            right_kind, right = part()
            self._numbers(kind, right_kind)
            left = _joined(_ARITHMETIC[operator], left, right)
        return kind, left

    def _sign(self) -> _Node:
        operator = self._take("-", "+")
        if operator is None:
            return self._power()
        kind, inner = self._sign()
        self._numbers(kind)
        return kind, (lambda values: -inner(values)) if operator == "-" else inner

    def _power(self) -> _Node:
        kind, base = self._atom()
        if self._take("**", "^") is None:
            return kind, base
        right_kind, exponent = self._sign()
        self._numbers(kind, right_kind)
        return kind, _joined(_power, base, exponent)

    def _atom(self) -> _Node:
        if self._take("(") is not None:
            inner = self._choice()
            self._need(")")
            return inner
        if self._take("[") is not None:
            items = self._arguments("]")
            return "list", lambda values: [item(values) for item in items]
        if self._at >= len(self._tokens):
            self._refuse("it ends too early")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            constant = float(text)
            return "number", lambda values: constant
        if kind == "operator":
            self._refuse(f"unexpected {text!r}")
        return self._call(text) if self._take("(") is not None else self._name(text)

    def _name(self, name: str) -> _Node:
        if name in ("and", "or", "not", "in", "true", "false", "nil", "let"):
            self._refuse(f"{name!r} is not supported")
        if name not in self.names:
            self.names.append(name)
        return "number", lambda values: values[name]

    def _call(self, name: str) -> _Node:
        if name in _ON_LISTS:
            kind, items = self._choice()
            self._need(")")
            if kind != "list":
                self._refuse(f"{name} takes a list: {name}([a, b])")
            on_list = _ON_LISTS[name]
            return "number", lambda values: on_list(items(values))
        if name not in _ON_NUMBERS:
            known = ", ".join([*_ON_NUMBERS, *_ON_LISTS])
            self._refuse(f"the function {name} is not supported, only {known}")
        arguments = self._arguments(")")
        least, on_numbers = _ON_NUMBERS[name]
        if len(arguments) < least or (least == 1 and len(arguments) > 1):
            self._refuse(f"{name} takes {'one argument' if least == 1 else 'at least two arguments'}")
        return "number", lambda values: on_numbers(*(argument(values) for argument in arguments))

    def _arguments(self, closing: str) -> list[_Compute]:
        arguments = []
        while True:
            kind, argument = self._choice()
            self._numbers(kind)
            arguments.append(argument)
            if self._take(",") is None:
                self._need(closing)
                return arguments

    def _numbers(self, *kinds: str) -> None:
        for kind in kinds:
            if kind != "number":
                self._refuse(f"a {kind} stands where a number is needed")


def _joined(operate: Callable[[float, float], float], left: _Compute, right: _Compute) -> _Compute:
    return lambda values: operate(left(values), right(values))


def _power(base: float, exponent: float) -> float:
    result = base**exponent
    if isinstance(result, complex):
        raise OverflowError("a root of a negative number")
    return result
