"""Result files of the planner's profiler: one npz of prefill measurements and one of decode measurements.

Prefill: ``prefill_isl`` (tokens) and ``prefill_ttft`` (ms), one request each. Decode: scattered points of
``x_kv_usage`` (share of ``max_kv_tokens`` in use), ``y_context_length`` (tokens) and ``z_itl`` (ms). Files
with several tensor-parallel sizes hold one row for each, and name them in ``tp``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dynamo_sim.text import cut, plain_number, printable, shown
from dynamo_sim.timing.profile_grid import ARRAYS, Floats, ProfileGrid
from dynamo_sim.timing.profile_points import decode_grid, sorted_curve

MAX_USAGE = 2.0
"""A profiler may find somewhat more in use than its estimate of the pool; percentages are refused."""

MAX_TOKENS = 1e300

Arrays = Mapping[str, npt.NDArray[Any]]

PREFILL_ARRAYS = ("prefill_isl", "prefill_ttft")
DECODE_ARRAYS = ("x_kv_usage", "y_context_length", "z_itl", "max_kv_tokens")
_LABELS = ("model", "gpu_type", "framework", "framework_version", "tp", "block_size")


def kind_of(arrays: Arrays) -> str | None:
    """What an npz file holds: "grid", "prefill", "decode", or None for neither of them.

    A broken file counts as what it comes closest to, so that its error can say what is missing.
    """
    if "prefill_ttft" in arrays:
        return "prefill"
    if any(name in arrays for name in DECODE_ARRAYS):
        return "decode"
    return "grid" if any(name in arrays for name in ARRAYS) else None


def convert(prefill: Arrays, decode: Arrays, tp: int | None) -> tuple[ProfileGrid, Floats, dict[str, str]]:
    """The grid of a pair of files.

    Args:
        tp: the tensor-parallel size to take; may be None where the files hold only one.

    Returns:
        The grid; the measured decode points, shape (n, 3): KV tokens in use, context tokens, ms; labels.

    Raises:
        ValueError: an array is missing or misshapen, ``tp`` is not there, or has to be chosen.
    """
    prefill_row = _row(prefill, PREFILL_ARRAYS, tp)
    decode_row = _row(decode, DECODE_ARRAYS, tp)
    isl, ttft_ms = sorted_curve(prefill_row["prefill_isl"], prefill_row["prefill_ttft"])
    pool_tokens = float(decode_row["max_kv_tokens"][0])
    if pool_tokens <= 0:
        raise ValueError(f"max_kv_tokens is {plain_number(pool_tokens)}; must be above 0")
    share = decode_row["x_kv_usage"]
    if not 0 <= share.min() <= share.max() <= MAX_USAGE:
        wrong = share.min() if share.min() < 0 else share.max()
        raise ValueError(
            f"x_kv_usage is the share of the KV pool in use, from 0 to 1, but has the value {wrong:g}"
        )
    if pool_tokens > MAX_TOKENS:
        raise ValueError(f"max_kv_tokens is {pool_tokens:g}, which is no finite number of tokens")
    active = share * pool_tokens
    context, itl_ms = decode_row["y_context_length"], decode_row["z_itl"]
    grid = ProfileGrid(isl, ttft_ms, *decode_grid(active, context, itl_ms))
    labels = {name: cut(printable(str(decode_row[name][0]))) for name in _LABELS if name in decode_row}
    labels["profiled KV pool"] = f"{pool_tokens:,.0f} tokens"
    return grid, np.stack([active, context, itl_ms], axis=1), labels


def _row(arrays: Arrays, names: tuple[str, ...], tp: int | None) -> dict[str, npt.NDArray[Any]]:
    """The arrays ``names`` and the labels of one tensor-parallel size, each one-dimensional."""
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing")
    for name in names:
        if arrays[name].dtype.kind not in "iuf":
            raise ValueError(f"{name} holds {arrays[name].dtype}, not numbers")
        if arrays[name].ndim > 2:
            raise ValueError(f"{name} must have at most 2 dimensions, not {arrays[name].ndim}")
    by_row = {
        name: np.atleast_2d(arrays[name])
        for name in (*names, *_LABELS)
        if name in arrays and (name in names or (arrays[name].size > 0 and arrays[name].ndim <= 2))
    }
    lengths = {name: values.shape[0] for name, values in by_row.items() if name in names}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"different numbers of rows: {', '.join(f'{k} {v}' for k, v in lengths.items())}")
    row = _which_row(by_row.get("tp"), lengths[names[0]], tp)
    chosen = {name: values[min(row, len(values) - 1)] for name, values in by_row.items()}
    for name in names:
        chosen[name] = np.asarray(chosen[name], dtype=np.float64)
        if not len(chosen[name]) or not np.isfinite(chosen[name]).all():
            raise ValueError(f"{name} is empty or holds values that are not finite numbers")
    points = {name: len(chosen[name]) for name in names if name != "max_kv_tokens"}
    if len(set(points.values())) > 1:
        raise ValueError(f"different numbers of points: {', '.join(f'{k} {v}' for k, v in points.items())}")
    return chosen


def _which_row(sizes: npt.NDArray[Any] | None, rows: int, tp: int | None) -> int:
    if rows == 1 and tp is None:
        return 0
    known = [] if sizes is None else _whole_numbers(sizes.ravel())
    if len(known) != rows:
        if rows == 1:
            return 0  # no labels: nothing says that it is another size
        raise ValueError(
            f"{rows} rows of measurements, but nothing (array tp) says of which tensor-parallel size"
        )
    if tp is None:
        raise ValueError(
            f"holds tensor-parallel sizes {known}; take one of them out with "
            "`dynamo-sim timing FILE --tp N --save OUT.npz`"
        )
    if tp not in known:
        raise ValueError(f"no measurements of tensor-parallel size {tp}, only of {known}")
    return known.index(tp)


def _whole_numbers(sizes: npt.NDArray[Any]) -> list[int]:
    if sizes.dtype.kind not in "iuf" or not (np.isfinite(sizes) & (sizes == np.floor(sizes))).all():
        raise ValueError(f"tp must hold whole numbers, found {shown(sizes.tolist())}")
    return [int(size) for size in sizes]
