"""A picture of a timing profile: what was measured, and the lines a run reads off between it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from dynamo_sim.report.plots.style import BLUE, literal
from dynamo_sim.timing.profile_grid import Floats
from dynamo_sim.timing.profile_source import Profile

MAX_LINES = 7  # context lengths drawn; more could not be told apart
LOG_BELOW = 0.2  # an axis is logarithmic when half of its points lie in this first part of it


def profile_figure(profile: Profile, title: str) -> Figure:
    """Prefill times over prompt tokens, and decode times over KV tokens in use with one line a context length."""
    figure = Figure(figsize=(12.0, 5.4), layout="constrained")
    figure.suptitle(literal(title), x=0.01, ha="left", fontsize=12)
    prefill, decode = figure.subplots(1, 2)
    draw_prefill(prefill, profile)
    draw_decode(decode, profile)
    return figure


def draw_prefill(ax: Axes, profile: Profile) -> None:
    """The curve of prefill times, its measured points, and the lines it continues with outside."""
    x, y = profile.grid.prefill_isl, profile.grid.prefill_ttft_ms
    fine = _between(x)
    ax.plot(fine, np.interp(fine, x, y), color=BLUE, linewidth=1.6, label="interpolated")
    ax.plot(x, y, "o", color=BLUE, markersize=5, label="measured")
    ax.set_title("Prefill", loc="left")
    ax.set_xlabel("prompt tokens computed in the pass")
    ax.set_ylabel("prefill time (ms)")
    _scale(ax, x, y)
    ax.legend(frameon=False, loc="best")


def draw_decode(ax: Axes, profile: Profile) -> None:
    """Decode times over KV tokens in use: solid where measured, dotted where the column was filled in."""
    grid, points = profile.grid, profile.decode_points
    active = grid.decode_active_kv_tokens
    chosen = _spread(len(grid.decode_context_length), MAX_LINES)
    colours = colormaps["viridis"](np.linspace(0.0, 0.88, len(chosen)))
    seen = []
    filled_in = False
    for column, colour in zip(chosen, colours, strict=True):
        context = grid.decode_context_length[column]
        mine = points[points[:, 1] == context]
        low, high = mine[:, 0].min(), mine[:, 0].max()
        itl = grid.decode_itl[:, column]
        label = f"{context:,.0f}"
        for fine, style, name in (
            (_between(active[(active >= low) & (active <= high)]), "-", label),
            (_between(active[active <= low]), ":", None),
            (_between(active[active >= high]), ":", None),
        ):
            if len(fine) < 2:
                continue
            values = np.interp(fine, active, itl)
            filled_in |= style == ":"
            ax.plot(fine, values, style, color=colour, linewidth=1.5, label=name)
        ax.plot(mine[:, 0], mine[:, 2], "o", color=colour, markersize=4.5)
        seen.append(mine)
    measured = np.concatenate(seen)
    ax.set_title("Decode", loc="left")
    ax.set_xlabel("KV tokens in use")
    ax.set_ylabel("decode step (ms)")
    _scale(ax, active, measured[:, 2])
    total = len(grid.decode_context_length)
    ax.legend(
        title="mean context\n(tokens)" + (f"\n{len(chosen)} of {total}" if len(chosen) < total else ""),
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.2,
    )
    explanation = "points: measured; dotted: filled in" if filled_in else "points: measured"
    ax.set_title(explanation, loc="right", fontsize=9, color="#555555")


def _spread(count: int, most: int) -> list[int]:
    """At most ``most`` indices of ``count``, evenly spread, with both ends."""
    return sorted({round(index) for index in np.linspace(0, count - 1, min(count, most))})


def _between(x: Floats) -> Floats:
    """The points, with more of them between: a straight line is none on a logarithmic axis."""
    if len(x) < 2:
        return x
    return np.concatenate([np.linspace(a, b, 24, endpoint=False) for a, b in pairwise(x)] + [x[-1:]])


def _scale(ax: Axes, x: Floats, y: Floats) -> None:
    """Both axes logarithmic when the points were chosen so, else linear from 0."""
    crowded = float(np.median(x)) < x[0] + LOG_BELOW * (x[-1] - x[0])
    if crowded and x[0] > 0 and y.min() > 0:
        for axis, set_scale, values in ((ax.xaxis, ax.set_xscale, x), (ax.yaxis, ax.set_yscale, y)):
            set_scale("log")
            few = values.max() / values.min() < 1e3
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=16))
            axis.set_minor_formatter(NullFormatter())
        ax.set_ylim(float(y.min()) / 1.3, float(y.max()) * 1.3)
    else:
        ax.set_ylim(0.0, 1.08 * float(y.max()) if y.max() > 0 else 1.0)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(_plain))
    ax.grid(True, color="#D9D9D9", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _plain(value: float, _position: Any = None) -> str:
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * factor or (abs(value) >= factor and value % factor == 0):
            return f"{value / factor:g}{unit}"
    return f"{value:g}"
