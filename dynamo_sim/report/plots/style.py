"""How all pictures look: colours, units on axes, legends."""

from __future__ import annotations

import math
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from dynamo_sim.text import duration_text

# Okabe and Ito's colours, told apart by colour-blind readers; each use also has a line style or brightness.
BLUE, SKY, GREEN, VERMILION, ORANGE = "#0072B2", "#56B4E9", "#009E73", "#D55E00", "#E69F00"
GREY, LIGHT_GREY, INK = "#7F7F7F", "#ECECEC", "#222222"

LEGEND_POINTS = 8.5

NO_PASSES = "no forward pass was recorded (scenario key report.passes)"

TIME_UNITS = ((2 * 3_600_000.0, 3_600_000.0, "h"), (600_000.0, 60_000.0, "min"), (2_000.0, 1_000.0, "s"))


def time_unit(span_ms: float) -> tuple[float, str]:
    """The unit to count a span in: how many ms it has, and its name."""
    for at_least_ms, unit_ms, name in TIME_UNITS:
        if span_ms >= at_least_ms:
            return unit_ms, name
    return 1.0, "ms"


def literal(text: str) -> str:
    """A text in which matplotlib finds no formula: dollar signs stay dollar signs."""
    return text.replace("$", r"\$")


def tidy(ax: Axes) -> None:
    """Light grid behind the data, no box."""
    ax.grid(True, color="#D9D9D9", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=9)


MAGENTA, BROWN = "#CC79A7", "#8C564B"

PALETTES = (
    (BLUE, VERMILION, GREEN),
    (MAGENTA, BROWN, ORANGE),
    (INK, GREY, SKY),
)
"""Colours of the first, second and third run on one Axes; a fourth begins anew."""

_RUNS: WeakKeyDictionary[Axes, list[str]] = WeakKeyDictionary()


def add_run(ax: Axes, name: str) -> tuple[int, str]:
    """Note that a run is drawn on axes.

    Returns:
        How many are there already, and how to begin its labels: empty for the first. The labels of the first are
        given its name when there is a second.
    """
    runs = _RUNS.setdefault(ax, [])
    place = len(runs)
    runs.append(name if name not in runs else f"{name} ({place + 1})")
    if place == 1 and (legend := ax.get_legend()) is not None:
        for handle in legend.legend_handles:
            if handle is not None:
                handle.set_label(f"{runs[0]} {handle.get_label()}")
    return place, f"{runs[place]} " if place else ""


def earlier_handles(ax: Axes, place: int) -> list[Any]:
    """What the legend explains of the runs before the one at ``place``."""
    legend = ax.get_legend()
    return [] if not place or legend is None else [h for h in legend.legend_handles if h is not None]


def whole_numbers(axis: Any) -> None:
    """Put ticks at whole numbers only."""
    axis.set_major_locator(MaxNLocator(nbins="auto", integer=True))
    axis.set_major_formatter(FuncFormatter(_plain))


def plain_log(axis: Any, low: float, high: float) -> None:
    """Ticks of a logarithmic axis as plain numbers, and enough of them when it spans few decades."""
    if math.log10(high / low) < 2.6:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
    axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_formatter(NullFormatter())


def _plain(value: float, _position: int | None = None) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def wants_log(values: NDArray[np.float64], decades: float = 1.5) -> bool:
    """Whether positive values span more decades than a linear axis shows."""
    positive = values[values > 0]
    return len(positive) > 1 and bool(positive.max() / positive.min() > 10.0**decades)


def say(ax: Axes, title: str, text: str) -> None:
    """Instead of a picture: why there is none."""
    ax.set_title(title, loc="left")
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=GREY, wrap=True)
    # Ticks themselves may be shared with other axes, so they are only hidden here.
    ax.tick_params(left=False, labelleft=False, bottom=False, labelbottom=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def bound_line(ax: Axes, axis: str, bound_ms: float, name: str, colour: str) -> Any:
    """A dotted line at a bound, and what to explain in the legend; limits of the axis must be set before.

    A bound far from the data is named in the legend only: drawing it would squash what there is to see.
    """
    low, high = ax.get_xlim() if axis == "x" else ax.get_ylim()
    logarithmic = (ax.get_xscale() if axis == "x" else ax.get_yscale()) == "log"
    reach = 10.0 if logarithmic else 1.6
    visible = low / reach <= bound_ms <= high * reach and (bound_ms > 0 or not logarithmic)
    name = f"{name} {duration_text(bound_ms)}" + ("" if visible else " (out of view)")
    look: dict[str, Any] = {"color": colour, "linestyle": (0, (1, 1.5)), "linewidth": 1.7, "label": name}
    if not visible:
        return Line2D([], [], **look)
    margin = 1.15 if logarithmic else 1.05
    if axis == "x":
        ax.set_xlim(min(low, bound_ms / margin) if logarithmic else low, max(high, bound_ms * margin))
        return ax.axvline(bound_ms, **look)
    ax.set_ylim(min(low, bound_ms / margin) if logarithmic else low, max(high, bound_ms * margin))
    return ax.axhline(bound_ms, **look)


def title_and_legend(ax: Axes, title: str, handles: list[Any] | None = None) -> None:
    """Put the legend between the title and the data, in as many columns as fit: it can hide neither."""
    figure = ax.get_figure(root=True)
    if figure is not None and figure.get_layout_engine() is None:
        figure.set_layout_engine(
            "constrained"
        )  # the title and the legend would be cut at the edge of the figure
    found = handles if handles is not None else ax.get_legend_handles_labels()[0]
    if not found:
        ax.set_title(title, loc="left")
        return
    widths = [0.5 * len(str(handle.get_label())) + 4.8 for handle in found]  # in letter heights, about
    room = ax.get_window_extent().width / ax.figure.dpi * 72.0 / LEGEND_POINTS
    columns = len(found) if sum(widths) <= room else min(len(found), max(1, int(room / max(widths))))
    rows = -(-len(found) // columns)
    ax.legend(
        handles=found,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        fontsize=LEGEND_POINTS,
        borderaxespad=0.1,
        borderpad=0.2,
        handlelength=2.6,
        labelspacing=0.3,
        columnspacing=1.6,
    )
    # Empty lines keep the room of the legend. A wide `pad` would too, until somebody sets another title of the axes.
    ax.set_title(title + rows * "\n", loc="left")
