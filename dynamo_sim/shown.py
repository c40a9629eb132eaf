"""Values in messages: short, on one line, whatever they are."""

from __future__ import annotations

import reprlib
from typing import Any

MOST_LETTERS = 60


def shown(value: Any, most: int = MOST_LETTERS) -> str:
    """A value for a message, shortened to ``most`` letters."""
    try:
        # Nested data is cut before it is written: aliases of YAML can make it endless.
        text = _NESTED.repr(value) if isinstance(value, dict | list | tuple) else repr(value)
    except ValueError:
        return "a number of thousands of digits"
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


_NESTED = reprlib.Repr()
_NESTED.maxstring = _NESTED.maxother = 2 * MOST_LETTERS
