"""What was decided, and the metrics that policies read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from dynamo_sim.report.decision_metrics import Series
from dynamo_sim.report.plots.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    SKY,
    VERMILION,
    literal,
    say,
    tidy,
    time_unit,
    title_and_legend,
    whole_numbers,
)

if TYPE_CHECKING:
    import pandas as pd

    from dynamo_sim.report.tables import RunTables

Floats = NDArray[np.float64]

MAX_PANELS = 3
MAX_DOTS = 150
MAX_LETTERS = 46
STYLES = ((BLUE, "-"), (GREEN, "-."), (INK, ":"), (GREY, "-"))
"""Colour and style of the metrics of a panel."""

LIMIT_STYLES = ((VERMILION, (0, (5, 2))), (ORANGE, (0, (2, 1.5))))
OFF_THE_SCALE = 1.6
"""More desired workers than this many times the largest fleet are drawn there."""

SQUASHED = 8.0
"""A metric that was this many times as high as its threshold is drawn on a logarithmic scale above twice that."""

OUT_OF_VIEW = 4.0
"""A threshold that is this many times as high as the metric ever was is only named."""


def draw_decisions(ax: Axes, result: RunTables, fleet: str) -> Axes:
    """From the workers that the metrics ask for to the target of a fleet, evaluation by evaluation."""
    frame = result.decisions_of(fleet)
    which = f"{fleet} fleet" if result.records.is_disaggregated else "fleet"
    title = f"Decisions: desired workers, and the target of the {which}"
    if not len(frame):
        say(ax, "Decisions", "nobody decided about the size of the fleet")
        return ax
    end_s = max(result.end_ms / 1000.0, float(frame["at_s"].max())) or 1.0
    unit_ms, unit = time_unit(end_s * 1000.0)
    scale = 1000.0 / unit_ms
    at, edge = frame["at_s"].to_numpy(np.float64) * scale, end_s * scale
    before, target = _floats(frame["current"]), _floats(frame["target"])
    ax.fill_between(
        np.append(0.0, np.append(at, edge)),
        np.append(before[0], np.append(target, target[-1])),
        step="post",
        color=SKY,
        alpha=0.45,
        linewidth=0.0,
    )
    handles: list[Any] = [Patch(color=SKY, alpha=0.45, linewidth=0, label="target")]
    top, beyond = max(float(before.max()), float(target.max()), 1.0), 0.0
    marks: tuple[tuple[str, dict[str, Any]], ...] = (
        ("stabilised", {"color": GREEN, "marker": "_", "markersize": 7, "markeredgewidth": 2.0}),
        (
            "desired",
            {
                "color": INK,
                "marker": "o",
                "markersize": 3.4 if len(frame) <= MAX_DOTS else 2.0,
                "markerfacecolor": "white",
            },
        ),
    )
    for name, mark in marks:
        values = _floats(frame[name])
        if not np.isfinite(values).any():
            continue
        beyond = max(beyond, float(np.nanmax(values)))
        values = np.minimum(values, OFF_THE_SCALE * top)
        handles += ax.plot(at, values, linestyle="none", label=name, clip_on=False, zorder=4, **mark)
    handles += mark_changes(ax, frame, scale)
    cap = OFF_THE_SCALE * top
    if beyond > cap:
        label = f"off the scale, up to {beyond:,.0f}"
        handles.append(ax.axhline(cap, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), label=label))
    ax.set_ylim(0.0, max(top, min(beyond, cap)) * 1.06)
    ax.set_xlim(0.0, edge)
    ax.set_xlabel(f"time ({unit})")
    ax.set_ylabel("workers")
    whole_numbers(ax.yaxis)
    tidy(ax)
    title_and_legend(ax, title, handles)
    return ax


def draw_target(ax: Axes, frame: pd.DataFrame, edge: float, scale: float) -> list[Any]:
    """The target as a line, with marks where it changed; returns what to explain in the legend.

    Args:
        ax: where the workers are drawn.
        frame: the decisions, at least one.
        edge: end of the time axis.
        scale: units of the time axis in a second.
    """
    at = np.append(0.0, np.append(frame["at_s"].to_numpy(np.float64) * scale, edge))
    target = _floats(frame["target"])
    values = np.append(_floats(frame["current"])[:1], np.append(target, target[-1]))
    halo = [patheffects.Stroke(linewidth=3.4, foreground="white"), patheffects.Normal()]
    line = ax.step(
        at, values, where="post", color=VERMILION, linewidth=1.7, label="target", path_effects=halo, zorder=4
    )
    return [*line, *mark_changes(ax, frame, scale)]


def mark_changes(ax: Axes, frame: pd.DataFrame, scale: float) -> list[Any]:
    """A triangle for each decision that changed something."""
    at, target, current = (
        frame["at_s"].to_numpy(np.float64) * scale,
        *map(_floats, (frame["target"], frame["current"])),
    )
    size = 7.0 if int((target != current).sum()) <= 60 else 4.5
    handles: list[Any] = []
    for chosen, marker, name, fill in (
        (target > current, "^", "scaled out", INK),
        (target < current, "v", "scaled in", "white"),
    ):
        if chosen.any():
            handles += ax.plot(
                at[chosen],
                target[chosen],
                linestyle="none",
                marker=marker,
                markersize=size,
                markerfacecolor=fill,
                markeredgecolor=INK,
                label=name,
                clip_on=False,
                zorder=5,
            )
    return handles


def draw_metric(ax: Axes, group: list[Series], frame: pd.DataFrame, scale: float) -> None:
    """A metric, or several of one unit, at each evaluation, and where the policy acts."""
    title = "Read by the policy: " + ", ".join(series.name for series in group)
    top = max((float(np.nanmax(s.values)) for s in group if np.isfinite(s.values).any()), default=0.0)
    changed = (frame["target"] != frame["current"]).to_numpy(bool)
    for at in np.unique(frame["at_s"].to_numpy(np.float64)[changed]) * scale:
        ax.axvline(at, color=GREY, linewidth=0.7, linestyle=(0, (1, 2)), zorder=1)
    handles: list[Any] = []
    blind = np.zeros(0)
    for series, (colour, style) in zip(group, STYLES * len(group), strict=False):
        at = series.at_s * scale
        dots: dict[str, Any] = {"marker": "o", "markersize": 2.6} if len(at) <= MAX_DOTS else {}
        handles += ax.plot(
            at,
            series.values,
            color=colour,
            linestyle=style,
            linewidth=1.5,
            label=_short(series.name),
            zorder=3,
            **dots,
        )
        blind = np.union1d(blind, at[~np.isfinite(series.values)])
    highest = top
    for (label, values), (colour, dashes) in zip(group[0].limits, LIMIT_STYLES * 9, strict=False):
        label = literal(label)
        dashed: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": 1.6}
        seen = values[np.isfinite(values)]
        if len(seen) and top and seen.min() > OUT_OF_VIEW * top:
            handles.append(Line2D([], [], label=f"{label} (out of view)", **dashed))
        elif len(seen) and (seen == seen[0]).all():
            handles.append(ax.axhline(seen[0], label=label, zorder=2, **dashed))
            highest = max(highest, float(seen[0]))
        elif len(seen):
            x = group[0].at_s * scale
            handles += ax.step(x, values, where="mid", label=label, zorder=2, **dashed)
            highest = max(highest, min(float(seen.max()), OUT_OF_VIEW * (top or float(seen.max()))))
    ax.set_ylim(0.0, (highest or 1.0) * 1.08)
    lowest = min((float(v[v > 0].min()) for _, v in group[0].limits if (v > 0).any()), default=0.0)
    unit = group[0].unit or "value"
    if lowest and top > SQUASHED * lowest:
        _logarithmic_above(ax, 2.0 * lowest, highest)
        unit += f"\n(log above {_number(2.0 * lowest)})"
    if len(blind):
        handles += ax.plot(
            blind,
            np.zeros(len(blind)),
            "x",
            color=INK,
            markersize=4.5,
            clip_on=False,
            zorder=5,
            label="no data",
        )
    if changed.any():
        handles.append(Line2D([], [], color=GREY, linewidth=0.9, linestyle=(0, (1, 2)), label="a change"))
    ax.set_ylabel(unit)
    tidy(ax)
    ax.grid(False, axis="x")
    title_and_legend(ax, _short(title, 110), handles)


def _logarithmic_above(ax: Axes, linear: float, highest: float) -> None:
    """Equal steps up to ``linear``, equal ratios above it: shows a threshold and a peak far above it alike."""
    ax.set_yscale("symlog", linthresh=linear, linscale=1.0)
    decades = range(math.floor(math.log10(linear)), math.ceil(math.log10(highest)) + 1)
    steps = (1, 2, 5) if math.log10(highest / linear) < 1.5 else (1, 3) if len(decades) < 4 else (1,)
    above = [
        step * 10.0**k for k in decades for step in steps if 1.4 * linear < step * 10.0**k <= highest * 1.5
    ]
    ax.set_ylim(0.0, highest * 1.5)
    ax.yaxis.set_major_locator(FixedLocator([0.0, linear / 2, linear, *above]))
    ax.yaxis.set_major_formatter(FuncFormatter(_number))
    ax.yaxis.set_minor_locator(NullLocator())


def _floats(column: Any) -> Floats:
    return np.asarray(column.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)


def _short(text: str, letters: int = MAX_LETTERS) -> str:
    """A name for a picture: short, and no formula."""
    return literal(text if len(text) <= letters else text[: letters - 1] + "…")


def _number(value: float, _position: int | None = None) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
