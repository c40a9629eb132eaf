"""What the fleet went through: arrivals, workers, queue and memory on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from dynamo_sim.records.levels import Level
from dynamo_sim.records.records import FleetRecords
from dynamo_sim.report.decision_metrics import Series
from dynamo_sim.report.plots.decisions import draw_metric, draw_target
from dynamo_sim.report.plots.handoffs import draw_handoffs
from dynamo_sim.report.plots.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    SKY,
    VERMILION,
    say,
    tidy,
    time_unit,
    title_and_legend,
    whole_numbers,
)

if TYPE_CHECKING:
    from dynamo_sim.report.tables import RunTables

Floats = NDArray[np.float64]

SAMPLES = 400
STATES = (("active", SKY, None), ("starting", ORANGE, "////"), ("draining", GREY, "...."))
"""State of a worker, its colour and its hatch."""


def has_memory(result: RunTables) -> bool:
    """Whether it is known how full the KV pools were: forward passes have been recorded."""
    return bool(result.has_passes and all(fleet.total_kv_tokens for fleet in result.records.fleets))


def draw_timeline(
    axes: Sequence[Axes], result: RunTables, metrics: Sequence[tuple[str, list[Series]]] = ()
) -> None:
    """Fill two axes, one or two (`has_memory`) for each fleet, and one for each group of ``metrics``, top to bottom.

    Two fleets have one more for what is on its way between them (`draw_handoffs`). All are given the same time axis,
    whether or not they share it. A group of metrics comes with the name of the fleet that its policy scales.
    """
    decided_ms = float(result.decisions["at_s"].max()) * 1000.0 if len(result.decisions) else 0.0
    end_ms = max(result.end_ms, float(result.columns.arrival_ms.max(initial=0.0)), decided_ms) or 1.0
    unit_ms, unit = time_unit(end_ms)
    fleets, panels = result.records.fleets or [FleetRecords()], iter(axes)
    _rates(next(panels), result, end_ms, unit_ms)
    for fleet in fleets:
        _workers(next(panels), result, fleet, end_ms, unit_ms)
        for name, group in metrics:
            if name == fleet.name:
                draw_metric(next(panels), group, result.decisions_of(name), 1000.0 / unit_ms)
    _queue(next(panels), result, end_ms, unit_ms)
    if result.records.is_disaggregated:
        draw_handoffs(next(panels), result, np.linspace(0.0, end_ms, SAMPLES + 1), unit_ms)
    if has_memory(result):
        for place, fleet in enumerate(fleets):
            _memory(next(panels), result, place, fleet, end_ms, unit_ms)
    for ax in axes:
        ax.set_xlim(0.0, end_ms / unit_ms)
    axes[-1].set_xlabel(f"time ({unit})")
    axes[-1].tick_params(bottom=True, labelbottom=True)


def _rates(ax: Axes, result: RunTables, end_ms: float, unit_ms: float) -> None:
    arrivals = result.columns.arrival_ms
    title = "Request rate"
    if not len(arrivals):
        say(ax, title, "no request arrived")
        return
    bins = int(np.clip(2.0 * np.sqrt(len(arrivals)), 10, 200))
    edges = np.linspace(0.0, end_ms, bins + 1)
    ended = result.columns.ended_ms
    for times, colour, style, name in (
        (arrivals, BLUE, "-", "arrived"),
        (ended[~np.isnan(ended)], VERMILION, "--", "ended"),
    ):
        rates = np.histogram(times, edges)[0] / (np.diff(edges) / 1000.0)
        ax.stairs(
            rates, edges / unit_ms, color=colour, linestyle=style, linewidth=1.5, label=name, baseline=None
        )
    ax.set_ylabel("requests/s")
    ax.set_ylim(bottom=0.0)
    tidy(ax)
    lines = [
        Line2D([], [], color=BLUE, label="arrived"),
        Line2D([], [], color=VERMILION, ls="--", label="ended"),
    ]
    title_and_legend(ax, title, lines)


def _workers(ax: Axes, result: RunTables, fleet: FleetRecords, end_ms: float, unit_ms: float) -> None:
    changes, decisions = fleet.changes, result.decisions_of(fleet.name)
    workers = f"{fleet.name.capitalize()} workers" if result.records.is_disaggregated else "Workers"
    if not changes:
        say(ax, workers, "changes of the fleet were not recorded")
        return
    edges = np.array([change.at_ms for change in changes] + [max(end_ms, changes[-1].at_ms)]) / unit_ms
    bottom = np.zeros(len(changes))
    handles: list[Any] = []
    for state, colour, hatch in STATES:
        count = np.array([getattr(change, state) for change in changes], dtype=np.float64)
        if count.any() or state == "active":
            top = bottom + count
            look: dict[str, Any] = {
                "facecolor": colour,
                "hatch": hatch,
                "edgecolor": INK if hatch else colour,
                "linewidth": 0.0,
            }
            ax.fill_between(
                edges, np.append(bottom, bottom[-1]), np.append(top, top[-1]), step="post", **look
            )
            handles.append(Patch(label=state, **look))
            bottom = top
    ax.step(edges, np.append(bottom, bottom[-1]), where="post", color=INK, linewidth=0.9)
    ax.set_ylabel("workers")
    most, title = max(1.0, float(bottom.max())), f"{workers} by state"
    if len(decisions):
        handles += draw_target(ax, decisions, end_ms / unit_ms, 1000.0 / unit_ms)
        most, title = max(most, float(decisions["target"].max())), f"{workers} by state, and their target"
    ax.set_ylim(0.0, most * 1.08)
    whole_numbers(ax.yaxis)
    tidy(ax)
    title_and_legend(ax, title, handles)


def _queue(ax: Axes, result: RunTables, end_ms: float, unit_ms: float) -> None:
    columns = result.columns
    title = "Queue: arrived, not admitted yet"
    if not len(columns):
        say(ax, title, "no request arrived")
        return
    # A rejected request may leave the queue without ever having been admitted.
    left = np.where(np.isnan(columns.first_admit_ms), columns.ended_ms, columns.first_admit_ms)
    left = left[~np.isnan(left)]
    level = Level.of_changes(
        np.concatenate([columns.arrival_ms, left]),
        np.concatenate([np.ones(len(columns)), -np.ones(len(left))]),
    )
    edges = np.linspace(0.0, end_ms, SAMPLES + 1)
    _mean_and_peak(ax, edges / unit_ms, level.means(edges), level.peaks(edges), BLUE, "mean", "peak")
    ax.set_ylabel("requests")
    if level.values.max(initial=0.0) <= 5:
        whole_numbers(ax.yaxis)
        ax.set_ylim(0.0, max(1.0, level.values.max(initial=0.0)) * 1.08)
    tidy(ax)
    title_and_legend(ax, title)


def _memory(
    ax: Axes, result: RunTables, place: int, fleet: FleetRecords, end_ms: float, unit_ms: float
) -> None:
    title, passes = "KV cache in use", result.pass_columns
    start_ms, ended_ms, used = passes["start_ms"], passes["end_ms"], passes["used_kv_tokens"]
    if result.records.is_disaggregated:
        title += f", {fleet.name} workers"
        mine = passes["fleet"] == place
        start_ms, ended_ms, used = start_ms[mine], ended_ms[mine], used[mine]
    edges = np.linspace(0.0, end_ms, SAMPLES + 1)
    serving = Level.of_values(
        [change.at_ms for change in fleet.changes] or [0.0],
        [change.active + change.draining for change in fleet.changes] or [1.0],
    )
    workers = serving.means(edges)
    whole = Level.of_spans(start_ms, ended_ms, used).means(edges)
    share = np.divide(whole, workers * fleet.total_kv_tokens, out=np.zeros(SAMPLES), where=workers > 0)
    fullest = np.zeros(SAMPLES)
    first = np.clip(np.searchsorted(edges, start_ms, side="right") - 1, 0, SAMPLES - 1)
    last = np.clip(np.searchsorted(edges, ended_ms, side="left") - 1, first, SAMPLES - 1)
    for offset in range(int((last - first).max(initial=0)) + 1):  # a pass may reach over several samples
        reaches = first + offset <= last
        np.maximum.at(fullest, first[reaches] + offset, used[reaches])
    _mean_and_peak(
        ax,
        edges / unit_ms,
        share * 100.0,
        fullest / fleet.total_kv_tokens * 100.0,
        BLUE,
        "mean of the serving workers",
        "fullest worker",
    )
    ax.set_ylabel("% of the pool")
    tidy(ax)
    title_and_legend(ax, title)


def _mean_and_peak(
    ax: Axes, x: Floats, mean: Floats, peak: Floats, colour: str, mean_name: str, peak_name: str
) -> None:
    ax.stairs(mean, x, color=colour, linewidth=1.5, baseline=None, label=mean_name)
    ax.stairs(np.maximum(peak, mean), x, fill=True, color=colour, alpha=0.22, linewidth=0, label=peak_name)
    ax.set_ylim(bottom=0.0)
