"""What it means that two answers are equal.

Whole numbers, booleans, texts, nulls and lengths have to be identical, floats equal within 1e-9. Rows of requests
have no order of their own (the reference names requests at random), and an expected error is satisfied by any error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

TOLERANCE = 1e-9
WORKER_FIELDS = ("prefill_worker_idx", "decode_worker_idx")


def differences(
    expected: dict[str, Any], actual: dict[str, Any], up_to_worker_names: bool = False
) -> list[str]:
    """Where ``actual`` differs from ``expected``; empty when they are equal.

    Args:
        up_to_worker_names: whether workers are called by the order of their first use, in both. Routers that draw
            between equal workers give them different requests every time, and they may be equal all the same.
    """
    if up_to_worker_names:
        expected, actual = _with_workers_by_first_use(expected), _with_workers_by_first_use(actual)
    if "error" in expected or "error" in actual:
        if "error" in expected and "error" in actual:
            return []
        return [f"expected {expected.get('error', 'a result')!r}, got {actual.get('error', 'a result')!r}"]
    found = list(_walk("report", expected["report"], actual["report"]))
    if expected.get("requests") is not None:
        found += _walk("requests", _in_order(expected["requests"]), _in_order(actual["requests"] or []))
    if expected.get("ticks") is not None:
        found += _walk("ticks", expected["ticks"], actual["ticks"])
    return found


def _with_workers_by_first_use(answer: dict[str, Any]) -> dict[str, Any]:
    answer = json.loads(json.dumps(answer))
    for field in WORKER_FIELDS:
        names: dict[int, int] = {}
        for row in _in_order(answer.get("requests") or [], left_out=("uuid", *WORKER_FIELDS)):
            if row.get(field) is not None:
                row[field] = names.setdefault(row[field], len(names))
    for snapshots in ("prefill_fpm_snapshots", "decode_fpm_snapshots"):
        names = {}
        for tick in answer.get("ticks") or []:
            for snapshot in tick[snapshots]:
                snapshot["worker_id"] = names.setdefault(snapshot["worker_id"], len(names))
    return answer


def _in_order(rows: list[dict[str, Any]], left_out: tuple[str, ...] = ("uuid",)) -> list[dict[str, Any]]:
    """The rows by what they hold, the time of arrival first."""
    return sorted(
        rows, key=lambda row: json.dumps([_rounded(row[key]) for key in sorted(row) if key not in left_out])
    )


def _rounded(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return [str(type(value)), value]
    return ["number", f"{value:030.6f}"]


def _walk(place: str, expected: Any, actual: Any) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            if key == "uuid":
                continue
            if key in actual:
                yield from _walk(f"{place}.{key}", value, actual[key])
            else:
                yield f"{place}.{key}: missing"
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{place}: expected {len(expected)} entries, got {len(actual)}"
        for index, (left, right) in enumerate(zip(expected, actual, strict=False)):
            yield from _walk(f"{place}[{index}]", left, right)
    elif not _same(expected, actual):
        yield f"{place}: expected {expected!r}, got {actual!r}"


def _same(expected: Any, actual: Any) -> bool:
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in (expected, actual)]
    if not all(numbers):
        return type(expected) is type(actual) and bool(expected == actual)
    if isinstance(expected, int) and isinstance(actual, int):
        return expected == actual
    return math.isclose(expected, actual, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
