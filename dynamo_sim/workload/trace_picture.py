"""A picture of a trace: arrivals over time and the distribution of lengths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynamo_sim.workload.inspect import TraceFacts

BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
TIME_BINS = 120


def draw(facts: TraceFacts, path: str | Path) -> None:
    """Write the picture of a trace; the suffix of ``path`` decides the kind of file."""
    figure = Figure(figsize=(10.0, 6.5), layout="constrained")
    grid = figure.add_gridspec(2, 2)
    name = Path(facts.file).name if facts.file else "records"
    figure.suptitle(f"{name}: {facts.rows:,} requests, format {facts.format}")
    draw_arrivals(figure.add_subplot(grid[0, :]), facts)
    draw_lengths(figure.add_subplot(grid[1, 0]), facts.input_tokens, "Prompt length", BLUE)
    draw_lengths(figure.add_subplot(grid[1, 1]), facts.output_tokens, "Output length", ORANGE)
    figure.savefig(path, dpi=130)


def draw_arrivals(axes: Axes, facts: TraceFacts) -> None:
    """Arrivals a second over time, of those the trace itself knows."""
    axes.set_title("Arrivals" if facts.turns.max() == 1 else "Arrivals the trace knows (others follow ends)")
    if not facts.span_ms:
        text = "all at one time" if len(facts.arrivals_ms) else "no times in the trace"
        axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    counts, edges_s = np.histogram(facts.arrivals_ms / 1000.0, bins=TIME_BINS)
    width_s = edges_s[1] - edges_s[0]
    axes.stairs(counts / width_s, edges_s, fill=True, color=GREEN, alpha=0.6)
    mean = facts.mean_rate_rps or 0.0
    axes.axhline(mean, color="black", linewidth=1.0, linestyle="--", label=f"mean {mean:.3g}/s")
    axes.set_xlabel("time since the first arrival (s)")
    axes.set_ylabel(f"requests per s (in {width_s:.3g} s)")
    axes.set_xlim(0.0, float(edges_s[-1]))
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="best")
    axes.grid(alpha=0.3)


def draw_lengths(axes: Axes, tokens: NDArray[np.int64], title: str, colour: str) -> None:
    """Histogram of lengths on a logarithmic axis, with median and 99th percentile."""
    positive = tokens[tokens > 0]
    axes.set_title(title)
    axes.set_xlabel("tokens")
    axes.set_ylabel("requests")
    axes.grid(alpha=0.3)
    if not len(positive):
        return
    low, high = float(positive.min()), float(positive.max())
    if high > low:
        axes.hist(positive, bins=list(np.geomspace(low, high, 50)), color=colour, alpha=0.7)
        axes.set_xscale("log")
    else:
        axes.bar([low], [len(positive)], width=max(1.0, low / 10.0), color=colour, alpha=0.7)
        axes.set_xlim(0.0, 2.0 * low)
    for percentile, style in ((50, "-"), (99, "--")):
        mark = float(np.percentile(tokens, percentile))
        axes.axvline(mark, color="black", linestyle=style, linewidth=1.0, label=f"p{percentile} {mark:,.0f}")
    axes.legend(loc="best")
