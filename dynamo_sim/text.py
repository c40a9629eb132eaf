"""Values in messages: short, on one line, whatever they are."""

from __future__ import annotations

import reprlib
import sys
from math import isfinite
from typing import Any

MAX_LETTERS = 60

MAX_DIGITS = 20
"""Whole numbers in messages have at most so many digits; every one that is allowed somewhere has fewer."""


def shown(value: Any, most: int = MAX_LETTERS) -> str:
    """A value for a message, shortened to ``most`` letters."""
    try:
        # Nested data is cut before it is written: aliases of YAML can make it endless.
        text = _NESTED.repr(value) if isinstance(value, dict | list | tuple) else repr(value)
    except ValueError:
        return "a number of thousands of digits"
    except Exception:  # the repr of a user's own class may raise anything
        return cut(f"an object of {type(value).__name__}, whose text cannot be made", most)
    text = " ".join(text.split())
    return cut(text, most)


def cut(text: str, most: int = MAX_LETTERS) -> str:
    """A text, shortened to ``most`` letters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def plain_number(value: float) -> str:
    """A number without a needless ``.0``, shortened where it is very long: -7, 2.5, inf, NaN."""
    if isinstance(value, int):
        return str(value) if abs(value) < 10**MAX_DIGITS else f"a number of more than {MAX_DIGITS} digits"
    if isinstance(value, float):
        if value != value:
            return "NaN"
        if isfinite(value) and value.is_integer() and abs(value) < 1e16:
            return str(int(value))
    return str(value)


def counted(number: int, noun: str) -> str:
    """A number of things: ``1 line``, ``2,000 lines``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def is_text(value: Any) -> bool:
    """Whether it is a text that UTF-8 can hold: JSON can spell, and a command line can hold, what is none."""
    try:
        return isinstance(value, str) and (value.isascii() or bool(value.encode()))
    except UnicodeEncodeError:
        return False


def with_whole_letters(text: str) -> str | None:
    """A text whose pairs of surrogates, as JSON spells rare letters, are joined; None where half of one is left."""
    if text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text):
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return None


def printable(text: str) -> str:
    """A text as one line: control characters, which could move the cursor of a terminal, as escapes."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def print_error(message: object) -> None:
    """Print to standard error, which may have gone with its terminal; each line of the message stays one."""
    try:
        for line in str(message).split("\n"):
            print(printable(line), file=sys.stderr)
    except OSError:
        pass


_NESTED = reprlib.Repr()
_NESTED.maxstring = _NESTED.maxother = 2 * MAX_LETTERS


_DURATION_UNITS = (
    (5_400_000.0, 3_600_000.0, "h"),
    (90_000.0, 60_000.0, "min"),
    (999.5, 1_000.0, "s"),
    (0.0, 1.0, "ms"),
)


def duration_text(value_ms: float) -> str:
    """A time in words of three digits: ``0.512 ms``, ``48.3 ms``, ``1.25 s``, ``3.2 min``."""
    unit_ms, name = next(
        (unit, name) for at_least_ms, unit, name in _DURATION_UNITS if value_ms >= at_least_ms
    )
    value = value_ms / unit_ms
    return f"{value:,.0f} {name}" if value >= 999.5 else f"{value:.3g} {name}"
