"""Operators and functions of formulas, with the strengths and results of the expr language (`spec 10, 3.5`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import fmean, median
from typing import Any

Compute = Callable[[Mapping[str, Any]], Any]
"""Computes a part of a formula from the values of triggers; None is a trigger that has failed too often."""


def _power(base: float, exponent: float) -> float:
    result = base**exponent
    if isinstance(result, complex):
        raise OverflowError("a root of a negative number")
    return result


ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": math.fmod,
    "**": _power,
    "^": _power,
}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
EITHER = ("or", "||")
BOTH = ("and", "&&")
COALESCE = "??"

STRENGTHS = {
    **dict.fromkeys(EITHER, 10),
    **dict.fromkeys(BOTH, 15),
    **dict.fromkeys(COMPARISONS, 20),
    **dict.fromkeys(("+", "-"), 30),
    **dict.fromkeys(("*", "/", "%"), 60),
    **dict.fromkeys(("**", "^"), 100),
    COALESCE: 500,
}
"""How strongly an operator between two parts binds."""

UNARY_STRENGTHS = {"not": 50, "!": 50, "-": 90, "+": 90}

BIND_RIGHT = ("**", "^")

OF_A_NUMBER: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "ceil": lambda value: float(math.ceil(value)),
    "floor": lambda value: float(math.floor(value)),
    "round": lambda value: math.copysign(math.floor(abs(value) + 0.5), value),
    "int": lambda value: float(math.trunc(value)),
    "float": float,
}
OF_A_LIST: dict[str, Callable[[list[float]], float]] = {
    "sum": math.fsum,
    "mean": fmean,
    "avg": fmean,
    "median": median,
    "len": lambda items: float(len(items)),
    "min": min,
    "max": max,
}
OF_SEVERAL_NUMBERS = ("min", "max")
"""Functions that also take numbers one by one."""

OF_A_PREDICATE: dict[str, Callable[[list[bool]], Any]] = {
    "count": lambda found: float(sum(found)),
    "any": any,
    "all": all,
    "none": lambda found: not any(found),
    "one": lambda found: sum(found) == 1,
}
"""Functions of a list and a condition on its elements."""

FUNCTIONS = (*OF_A_NUMBER, *OF_A_LIST, *OF_A_PREDICATE)


def applied(operator: str, left: Compute, right: Compute) -> Compute:
    """An operator between two parts; ``or``, ``and`` and ``??`` compute the right one only where it counts."""
    if operator in EITHER:
        return lambda values: left(values) or right(values)
    if operator in BOTH:
        return lambda values: left(values) and right(values)
    if operator == COALESCE:
        return lambda values: right(values) if (found := left(values)) is None else found
    operate = ARITHMETIC.get(operator) or COMPARISONS[operator]
    return lambda values: operate(left(values), right(values))
