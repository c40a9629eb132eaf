"""From scattered decode measurements to the grid of a planner profile.

Profilers measure, for each context length, a handful of batch sizes. The same batch at another context
length uses another part of the KV pool, so the points do not form a grid. Here every context length becomes a
column, and every measured number of KV tokens a row: each measured value stays as it is, the rest is filled
in along the columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dynamo_sim.timing.profile_grid import Floats

MAX_CELLS = 4_000_000


def sorted_curve(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Points of a curve with rising ``x``; values measured several times at one ``x`` become their mean."""
    values = np.asarray(y, dtype=np.float64)
    axis, index = np.unique(np.asarray(x, dtype=np.float64), return_inverse=True)
    return axis, np.bincount(index, weights=values) / np.bincount(index)


def decode_grid(
    active_kv_tokens: npt.NDArray[Any], context_tokens: npt.NDArray[Any], itl_ms: npt.NDArray[Any]
) -> tuple[Floats, Floats, Floats]:
    """The grid through measured points, three arrays of shape (points,).

    Beyond the measured points of its column a value continues the column's outermost segment, but never falls
    towards a fuller cache: that would be noise, and far out it would be absurd.

    Returns:
        ``decode_active_kv_tokens`` (a,), ``decode_context_length`` (c,), and ``decode_itl`` (a, c) in ms.

    Raises:
        ValueError: fewer than two context lengths, or one with fewer than two points, or far too many of both.
    """
    contexts = np.unique(context_tokens).astype(np.float64)
    if len(contexts) < 2:
        raise ValueError(
            f"decode was measured at {len(contexts)} context length(s); a grid needs at least two"
        )
    rows = np.unique(active_kv_tokens).astype(np.float64)
    if len(rows) * len(contexts) > MAX_CELLS:
        raise ValueError(
            f"decode was measured at {len(rows):,} loads and {len(contexts):,} context lengths; "
            f"their grid may have at most {MAX_CELLS:,} cells"
        )
    columns = []
    for context in contexts:
        here = context_tokens == context
        active, itl = sorted_curve(active_kv_tokens[here], itl_ms[here])
        if len(active) < 2:
            raise ValueError(
                f"decode at context length {context:g} was measured with one load only; it needs two"
            )
        columns.append(_continued(active, itl, rows))
    return rows, contexts, np.stack(columns, axis=1)


def _continued(x: Floats, y: Floats, at: Floats) -> Floats:
    """The curve through (x, y) at the points ``at``; its ends continue with a slope >= 0."""
    values: Floats = np.interp(at, x, y)
    first_slope = max(0.0, (y[1] - y[0]) / (x[1] - x[0]))
    last_slope = max(0.0, (y[-1] - y[-2]) / (x[-1] - x[-2]))
    values += np.where(at < x[0], (at - x[0]) * first_slope, 0.0)
    values += np.where(at > x[-1], (at - x[-1]) * last_slope, 0.0)
    return values
