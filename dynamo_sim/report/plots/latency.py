"""Latencies of requests: their distribution, and how they change over time."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from dynamo_sim.records.columns import RequestColumns
from dynamo_sim.records.percentiles import percentiles
from dynamo_sim.report.plots.style import (
    BLUE,
    GREEN,
    INK,
    PALETTES,
    VERMILION,
    add_run,
    bound_line,
    earlier_handles,
    plain_log,
    say,
    tidy,
    time_unit,
    title_and_legend,
    wants_log,
)
from dynamo_sim.report.summary import Sla
from dynamo_sim.text import counted, duration_text

Floats = NDArray[np.float64]

CURVES = (
    ("TTFT", "ttft_ms", "ttft_ms", "-"),
    ("TPOT", "tpot_ms", "itl_ms", "--"),
    ("E2E", "e2e_ms", "e2e_ms", "-."),
)
"""Label, column, bound of the SLA and line style of a distribution."""

BOUNDS = {"ttft_ms": "TTFT bound", "itl_ms": "TPOT bound (sla.itl_ms)", "e2e_ms": "E2E bound"}
"""What bounds of the SLA are called: ``itl_ms`` bounds the mean gap of a request, its TPOT (`spec 09, 4`)."""

METRICS = {
    "queue": ("Time in queue", "queue_ms", None),
    "ttft": ("Time to first token", "ttft_ms", "ttft_ms"),
    "ttst": ("Time to second token", "ttst_ms", None),
    "tpot": ("Time per output token", "tpot_ms", "itl_ms"),
    "e2e": ("Request latency", "e2e_ms", "e2e_ms"),
}
"""Name, title, column and bound of the SLA of what can be drawn over time."""

MAX_DOTS = 3_000
MAX_BINS = 120
REQUESTS_A_BIN = 20


def draw_distributions(ax: Axes, columns: RequestColumns, sla: Sla | None, name: str = "run") -> Axes:
    """Cumulative distributions of TTFT, TPOT and E2E over the requests the summary counts."""
    served = columns.where(columns.counting)
    if not len(served):
        say(ax, "Latency", "no request got a token")
        return ax
    place, prefix = add_run(ax, name)
    handles = earlier_handles(ax, place)
    colours = PALETTES[place % len(PALETTES)]
    shown = [getattr(served, column) for _, column, *_ in CURVES]
    shown = [values[~np.isnan(values)] for values in shown]
    logarithmic = wants_log(np.concatenate(shown)) if not place else ax.get_xscale() == "log"
    for values, (label, _, _, style), colour in zip(shown, CURVES, colours, strict=True):
        if len(values):
            handles += _curve(ax, values, prefix + label, colour, style, logarithmic)
    if logarithmic:
        ax.set_xscale("log")
        plain_log(ax.xaxis, *ax.get_xlim())
    else:
        ax.set_xlim(left=0.0)
    for (_, _, bound_name, _), colour in zip(CURVES, colours, strict=True):
        bound = None if sla is None else getattr(sla, bound_name)
        if bound is not None and not _explained(handles, bound_name, bound):
            handles.append(bound_line(ax, "x", bound, prefix + BOUNDS[bound_name], colour))
    ax.set_ylim(0.0, 103.0)
    ax.set_xlabel("latency (ms" + (", logarithmic)" if logarithmic else ")"))
    ax.set_ylabel("requests at or below (%)")
    tidy(ax)
    requests = counted(len(served), "request")
    title_and_legend(ax, f"Latency of {f'{place + 1} runs' if place else requests}", handles)
    return ax


def _explained(handles: list[Any], bound_name: str, bound_ms: float) -> bool:
    """Whether the same bound of another run is drawn already."""
    text = f"{BOUNDS[bound_name]} {duration_text(bound_ms)}"
    return any(text in str(handle.get_label()) for handle in handles)


def _curve(ax: Axes, values: Floats, label: str, colour: str, style: str, logarithmic: bool) -> list[Any]:
    """Draw a distribution; returns the line, if there is one."""
    ordered = np.sort(values)
    places = _thinned(len(ordered))
    x, y = ordered[places], (places + 1) * (100.0 / len(ordered))
    if logarithmic:  # zeros have no place there: the curve starts at the share they make up
        x, y = x[x > 0], y[x > 0]
        if not len(x):
            return []
    p50, p99 = (duration_text(value) for value in percentiles(values, (50, 99)))
    start = 100.0 * float(np.count_nonzero(values < x[0])) / len(values)
    return ax.plot(
        np.concatenate([x[:1], x]),
        np.concatenate([[start], y]),
        color=colour,
        linestyle=style,
        linewidth=1.8,
        drawstyle="steps-post",
        marker="o" if len(values) == 1 else None,
        label=f"{label}: p50 {p50}, p99 {p99}",
    )


def _thinned(count: int) -> NDArray[np.int64]:
    """Places of sorted values that draw the same curve: all of few, and every one of the tail of many."""
    if count <= 2_000:
        return np.arange(count)
    return np.unique(
        np.concatenate([np.linspace(0, count - 1, 1_600).astype(np.int64), np.arange(count - 300, count)])
    )


def draw_over_time(ax: Axes, columns: RequestColumns, metric: str, sla: Sla | None, run: str = "run") -> Axes:
    """Percentile bands of a latency by time of arrival; every request as a dot while they are few."""
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}: choose one of {', '.join(METRICS)}")
    name, column, bound_name = METRICS[metric]
    values = getattr(columns, column)
    known = ~np.isnan(values) & columns.counting
    values, arrival_ms = values[known], columns.arrival_ms[known]
    if not len(values):
        say(ax, name, "no request has it")
        return ax
    last_ms = float(arrival_ms.max())
    unit_ms, unit = time_unit(float(np.nanmax(columns.last_token_ms)))
    label = f"arrival ({unit})"
    place_of_run, prefix = add_run(ax, run)
    earlier, shared = earlier_handles(ax, place_of_run), (ax.get_xlim(), ax.get_ylim())
    colour = (BLUE, VERMILION, GREEN)[place_of_run % 3]
    handles: list[Any] = []
    lowest, highest = values.min(), values.max()
    if len(values) <= MAX_DOTS:
        size = 7.0 if len(values) > 300 else 18.0
        dot_colour = colour if place_of_run else INK
        ax.scatter(
            arrival_ms / unit_ms, values, s=size, color=dot_colour, alpha=0.45, linewidths=0, rasterized=True
        )
        dot: dict[str, Any] = {"color": dot_colour, "marker": "o", "markersize": 3, "linestyle": ""}
        handles.append(Line2D([], [], label=f"{prefix}request", **dot))
    if len(values) >= 2 * REQUESTS_A_BIN and last_ms > arrival_ms.min():
        edges = _bin_edges(arrival_ms)
        bins = len(edges) - 1
        place = np.clip(np.searchsorted(edges, arrival_ms, "right") - 1, 0, bins - 1)
        levels = _percentiles_by_bin(values, place, bins)
        handles = _bands(ax, edges / unit_ms, levels, colour, prefix) + handles
        label += f", {bins} time bins"
        if len(values) > MAX_DOTS:  # single requests are out of sight: show all of the bands, no more
            lowest, highest = np.nanmin(levels[0]), np.nanmax(levels[2])
    if wants_log(values, decades=2.0) and lowest > 0:
        ax.set_yscale("log")
        ax.set_ylim(lowest * 0.8, highest * 1.25)
        plain_log(ax.yaxis, *ax.get_ylim())
    else:
        ax.set_ylim(0.0, max(highest * 1.06, 1e-3))
    bound = None if sla is None or bound_name is None else getattr(sla, bound_name)
    if bound is not None and bound_name is not None and not _explained(earlier, bound_name, bound):
        handles.append(bound_line(ax, "y", bound, prefix + BOUNDS[bound_name], VERMILION))
    ax.set_xlim(0.0, max(last_ms * 1.01, 1.0) / unit_ms)
    if place_of_run:  # all runs stay in view
        (_, right), (bottom, top) = shared
        ax.set_xlim(0.0, max(right, ax.get_xlim()[1]))
        ax.set_ylim(min(bottom, ax.get_ylim()[0]), max(top, ax.get_ylim()[1]))
    ax.set_xlabel(label)
    ax.set_ylabel(f"{name.lower()} (ms)")
    tidy(ax)
    title_and_legend(ax, f"{name} by arrival", earlier + handles)
    return ax


def _bands(ax: Axes, x: Floats, levels: tuple[Floats, Floats, Floats], colour: str, prefix: str) -> list[Any]:
    """Lines at the percentiles, shades between them; returns what to explain in the legend."""
    p50, p90, p99 = levels
    handles: list[Any] = []
    lines: tuple[tuple[Floats, Any, str, str], ...] = (
        (p50, "-", "#00344F" if colour == BLUE else colour, "p50"),
        (p90, "--", colour, "p90"),
        (p99, ":", colour, "p99"),
    )
    for level, style, shade_of_line, name in lines:
        ax.stairs(level, x, baseline=None, color=shade_of_line, linestyle=style, linewidth=1.5, zorder=3)
        handles.append(
            Line2D([], [], color=shade_of_line, linestyle=style, linewidth=1.5, label=prefix + name)
        )
    for bottom, top, shade, name in ((p50, p90, 0.38, "p50 to p90"), (p90, p99, 0.16, "p90 to p99")):
        ax.stairs(top, x, baseline=bottom, fill=True, color=colour, alpha=shade, linewidth=0)
        if not prefix:  # the shades of a second run are those between its lines, too
            handles.append(Patch(color=colour, alpha=shade, linewidth=0, label=name))
    return handles


def _bin_edges(arrival_ms: Floats) -> Floats:
    """Equal bins of time, but neighbours with few requests are one bin; times without any stay apart."""
    equal = min(len(arrival_ms) // REQUESTS_A_BIN, MAX_BINS)
    counts, edges = np.histogram(arrival_ms, equal)
    first, held = [0], [int(counts[0])]  # of each bin: its first equal one, and its requests
    for place, count in enumerate(counts[1:].tolist(), 1):
        busy = bool(count and held[-1])
        last_of_busy = place == equal - 1 or not counts[place + 1]
        if busy and (held[-1] < REQUESTS_A_BIN or (count < REQUESTS_A_BIN and last_of_busy)):
            held[-1] += count
        else:
            first.append(place)
            held.append(count)
    return edges[[*first, equal]]


def _percentiles_by_bin(values: Floats, bins: NDArray[np.int64], count: int) -> tuple[Floats, Floats, Floats]:
    """p50, p90 and p99 by nearest rank, NaN for empty bins."""
    ordered = values[np.lexsort((values, bins))]
    sizes = np.bincount(bins, minlength=count)
    firsts = np.cumsum(sizes) - sizes
    result = []
    for percent in (50, 90, 99):
        places = firsts + np.floor((sizes - 1) * percent / 100 + 0.5).astype(np.int64)
        result.append(np.where(sizes > 0, ordered[np.clip(places, 0, len(ordered) - 1)], np.nan))
    return result[0], result[1], result[2]
