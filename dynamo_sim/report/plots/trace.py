"""A picture of a trace: arrivals over time and the distribution of lengths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynamo_sim.report.plots.style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    literal,
    plain_log,
    say,
    tidy,
    time_unit,
    title_and_legend,
    wants_log,
)
from dynamo_sim.report.trace_facts import TraceFacts

TIME_BINS = 120
LENGTH_BINS = 50


def trace_figure(facts: TraceFacts) -> Figure:
    """Arrivals a second over time, and histograms of prompt and output lengths."""
    figure = Figure(figsize=(10.0, 6.8), layout="constrained")
    grid = figure.add_gridspec(2, 2)
    name = Path(facts.file).name if facts.file else "records"
    figure.suptitle(
        f"{literal(name)}: {facts.rows:,} requests, format {facts.format}", x=0.01, ha="left", fontsize=12
    )
    draw_arrivals(figure.add_subplot(grid[0, :]), facts)
    draw_lengths(figure.add_subplot(grid[1, 0]), facts.input_tokens, "Prompt length", BLUE)
    draw_lengths(figure.add_subplot(grid[1, 1]), facts.output_tokens, "Output length", ORANGE)
    return figure


def draw_arrivals(ax: Axes, facts: TraceFacts) -> None:
    """Arrivals a second over time, of those the trace itself knows."""
    title = "Request rate" if facts.turns.max() == 1 else "Request rate of the arrivals the trace knows"
    if not facts.span_ms:
        say(ax, title, "all at one time" if len(facts.arrivals_ms) else "no times in the trace")
        return
    unit_ms, unit = time_unit(facts.span_ms)
    counts, edges_ms = np.histogram(facts.arrivals_ms, bins=TIME_BINS)
    width_s = (edges_ms[1] - edges_ms[0]) / 1000.0
    mean, name = facts.mean_rate_rps or 0.0, f"mean of {width_s:.3g} s"
    ax.stairs(counts / width_s, edges_ms / unit_ms, fill=True, color=GREEN, alpha=0.6, label=name)
    ax.axhline(mean, color=INK, linestyle="--", linewidth=1.2, label=f"mean of all {mean:.3g}/s")
    ax.set_xlabel(f"time since the first arrival ({unit})")
    ax.set_ylabel("requests/s")
    ax.set_xlim(0.0, float(edges_ms[-1]) / unit_ms)
    ax.set_ylim(bottom=0.0)
    tidy(ax)
    title_and_legend(ax, title)


def draw_lengths(ax: Axes, tokens: NDArray[np.int64], title: str, colour: str) -> None:
    """Histogram of lengths with median and 99th percentile, logarithmic where they differ much."""
    positive = tokens[tokens > 0]
    if not len(positive):
        say(ax, title, "no tokens")
        return
    low, high = float(positive.min()), float(positive.max())
    logarithmic = wants_log(positive.astype(np.float64))
    if high == low:
        ax.bar([low], [len(positive)], width=max(1.0, low / 10.0), color=colour, alpha=0.7)
        ax.set_xlim(0.0, 2.0 * low)
    elif logarithmic:
        ax.hist(positive, bins=list(np.geomspace(low, high, LENGTH_BINS)), color=colour, alpha=0.7)
        ax.set_xscale("log")
        plain_log(ax.xaxis, low, high)
    else:
        ax.hist(positive, bins=LENGTH_BINS, color=colour, alpha=0.7)
        ax.set_xlim(left=0.0)
    for percentile, style in ((50, "-"), (99, "--")):
        mark = float(np.percentile(tokens, percentile))
        ax.axvline(mark, color=INK, linestyle=style, linewidth=1.2, label=f"p{percentile} {mark:,.0f}")
    ax.set_xlabel("tokens (logarithmic)" if logarithmic else "tokens")
    ax.set_ylabel("requests")
    tidy(ax)
    title_and_legend(ax, title)
