"""What the router did: how much it found cached, and how evenly it loaded the workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from dynamo_sim.report.plots.style import BLUE, VERMILION, say, tidy, time_unit, title_and_legend
from dynamo_sim.report.summary import load_spread

if TYPE_CHECKING:
    from dynamo_sim.report.tables import RunTables

MAX_BINS = 100


def draw_routing(axes: Sequence[Axes], result: RunTables) -> None:
    """Fill two axes: the hit rate of the router, and the requests in flight by worker, over time."""
    end_ms = result.end_ms or 1.0
    unit_ms, unit = time_unit(end_ms)
    _hit_rate(axes[0], result, end_ms, unit_ms)
    _loads(axes[1], result, end_ms, unit_ms)
    for ax in axes:
        ax.set_xlim(0.0, end_ms / unit_ms)
    axes[1].set_xlabel(f"time ({unit})")
    axes[1].tick_params(bottom=True, labelbottom=True)


def _hit_rate(ax: Axes, result: RunTables, end_ms: float, unit_ms: float) -> None:
    title = "Hit rate: blocks of prompts cached on the worker chosen"
    known = [d for d in result.records.routing if d.hit_rate is not None]
    if not known:
        say(ax, title, "the router does not know what is cached")
        return
    edges = np.linspace(0.0, end_ms, int(np.clip(np.sqrt(len(known)), 5, MAX_BINS)) + 1)
    at_ms = np.array([d.at_ms for d in known])
    counts = np.histogram(at_ms, edges)[0]
    sums = np.histogram(at_ms, edges, weights=np.array([d.hit_rate for d in known]))[0]
    rates = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    ax.stairs(rates, edges / unit_ms, color=BLUE, linewidth=1.5, baseline=None)
    ax.set_ylim(-0.02, 1.02)  # a rate of 0 lies on the axis, and would not be seen
    ax.set_ylabel("share")
    tidy(ax)
    title_and_legend(ax, f"{title} ({result.summary['routing_hit_rate']:.1%} overall)")


def _loads(ax: Axes, result: RunTables, end_ms: float, unit_ms: float) -> None:
    title = "Requests in flight on a worker"
    if not result.records.routing:
        say(ax, title, "decisions of the router were not recorded")
        return
    spread = load_spread(result.records, end_ms)
    ax.plot(spread.at_ms / unit_ms, spread.most, color=VERMILION, linewidth=1.5, label="most")
    ax.plot(spread.at_ms / unit_ms, spread.mean, color=BLUE, linewidth=1.5, label="mean")
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("requests")
    tidy(ax)
    title_and_legend(ax, f"{title} (most / mean: {spread.imbalance:.2f})", list(ax.get_lines()))
