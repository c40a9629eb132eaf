"""Reading typed fields of one JSON record; every fault is a `BadLine` saying what was found and what is
allowed.

Rules of `spec 08, 3`: whole numbers must be JSON integers, ``null`` counts as absent, a key given twice or
beside its alias is a fault, unknown keys are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite
from typing import Any

from dynamo_sim.limits import MAX_TOKENS
from dynamo_sim.text import cut, is_text, plain_number
from dynamo_sim.traces.decimals import read_decimal
from dynamo_sim.traces.lines import BadLine, RepeatedKeys

U32_MAX = (1 << 32) - 1
U64_MAX = (1 << 64) - 1
I32_MAX = (1 << 31) - 1


def check_record(record: Any, known: frozenset[str]) -> None:
    """Refuse what is not an object, and known keys that were given twice."""
    if isinstance(record, RepeatedKeys):
        twice = sorted(record.repeated & known)
        if twice:
            raise BadLine(f"failed to parse as JSON: duplicate field {', '.join(twice)}")
    elif not isinstance(record, dict):
        raise BadLine(f"failed to parse as JSON: expected an object, found {found(record)}")


def found(value: Any) -> str:
    """What a value is, in the words of JSON and at most some ten characters of it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return plain_number(value)
    if isinstance(value, str):
        return f"the text {value[:20]!r}"
    if isinstance(value, list | tuple):
        return "a list"
    return "an object" if isinstance(value, dict) else type(value).__name__


def brief(name: str) -> str:
    """A name for a message: on one line, and shortened."""
    return cut(" ".join(name.split()))


def wrong(name: str, allowed: str, value: Any) -> BadLine:
    """The fault of a field whose value is of the wrong type or out of range."""
    return BadLine(f"failed to parse as JSON: {name} must be {allowed}, found {found(value)}")


def pick(record: dict[str, Any], name: str, alias: str | None = None) -> Any:
    """The value of a field that may go by two names; None where it is absent or null."""
    if alias is not None and alias in record:
        if name in record:
            raise BadLine(f"failed to parse as JSON: duplicate field {name} (also given as {alias})")
        return record[alias]
    return record.get(name)


def whole(
    record: dict[str, Any], name: str, alias: str | None = None, low: int = 0, high: int = U64_MAX
) -> int | None:
    """A whole number from ``low`` to ``high``, or None."""
    value = pick(record, name, alias)
    if value is None:
        return None
    if type(value) is not int or not low <= value <= high:
        raise wrong(name, f"a whole number from {low} to {high}", value)
    return value


def number(record: dict[str, Any], name: str, alias: str | None = None) -> float | None:
    """A finite number as a float, or None."""
    value = pick(record, name, alias)
    if value is None:
        return None
    return as_number(name, value)


def as_number(name: str, value: Any) -> float:
    """``value`` as a finite float."""
    if type(value) is float:
        if isfinite(value):
            return value
    elif type(value) is int:
        if -U64_MAX <= value <= U64_MAX:
            return float(value)
        read = read_decimal(format(value)) if abs(value) < 1 << 1024 else inf
        if isfinite(read):
            return read
    raise wrong(name, "a finite number", value)


def text(record: dict[str, Any], name: str) -> str | None:
    """A text, or None."""
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise wrong(name, "a text", value)
    if value is not None and not is_text(value):
        raise BadLine(f"failed to parse as JSON: {name} has half of a surrogate pair, which is no character")
    return value


def whole_list(record: dict[str, Any], name: str, high: int = U64_MAX) -> list[int] | None:
    """A list of whole numbers from 0 to ``high``, or None."""
    values = record.get(name)
    if values is None:
        return None
    if not isinstance(values, list | tuple):
        raise wrong(name, "a list of whole numbers", values)
    if values and (set(map(type, values)) != {int} or min(values) < 0 or max(values) > high):
        for position, value in enumerate(values):
            if type(value) is not int or not 0 <= value <= high:
                raise wrong(f"{name}[{position}]", f"a whole number from 0 to {high}", value)
    return list(values) if isinstance(values, tuple) else values


def check_lengths(prompt_tokens: int, output_tokens: int) -> None:
    """Refuse a prompt or an answer of more tokens than there can be."""
    for what, tokens in (("prompt", prompt_tokens), ("answer", output_tokens)):
        if tokens > MAX_TOKENS:
            raise BadLine(f"the {what} has {plain_number(tokens)} tokens; at most {MAX_TOKENS} are possible")


def obj(record: dict[str, Any], name: str) -> dict[str, Any] | None:
    """A nested object, or None."""
    value = record.get(name)
    if value is not None and not isinstance(value, dict):
        raise wrong(name, "an object", value)
    return value


def require(record: dict[str, Any], names: Iterable[str]) -> None:
    """Refuse a record that lacks one of ``names`` or has null there."""
    missing = [name for name in names if record.get(name) is None]
    if missing:
        raise BadLine(f"failed to parse as JSON: missing field {', '.join(missing)}")
