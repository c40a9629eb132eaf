"""What each worker did when: its passes as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch, StepPatch
from numpy.typing import NDArray

from dynamo_sim.records.levels import Level
from dynamo_sim.records.lifespans import Lifespan, lifespans
from dynamo_sim.report.plots.handoffs import draw_transfers
from dynamo_sim.report.plots.style import (
    GREY,
    LIGHT_GREY,
    NO_PASSES,
    SKY,
    VERMILION,
    say,
    tidy,
    time_unit,
    title_and_legend,
)
from dynamo_sim.text import duration_text

if TYPE_CHECKING:
    from dynamo_sim.report.tables import RunTables

Floats = NDArray[np.float64]

KINDS = (("prefill", VERMILION), ("decode", SKY), ("prefill and decode", "#0B2E4F"), ("neither", GREY))
"""What a pass does, by number, and its colour: medium, light and dark, to be told apart in grey too."""

ROW_HEIGHT = 0.72
MAX_BARS = 4_000
MAX_OUTLINED_BARS = 400
MAX_NAMES = 24
SAMPLES = 500
MAX_ID = 2**40
"""Above all ids of workers."""


def draw_gantt(ax: Axes, result: RunTables, window_ms: tuple[float, float] | None) -> Axes:
    """One row a worker. Few passes are single bars; of many, their share of short times is shown.

    Of two fleets, prefill stands above decode, and a row between them has the transfers.
    """
    start_ms, end_ms = (0.0, result.end_ms or 1.0) if window_ms is None else window_ms
    if not start_ms < end_ms:
        raise ValueError(f"the window must end after it starts, got {start_ms} to {end_ms} ms")
    title = "Passes by worker"
    if not result.has_passes:
        say(ax, title, NO_PASSES)
        return ax
    columns = result.pass_columns
    inside = (columns["end_ms"] > start_ms) & (columns["start_ms"] < end_ms)
    kinds = np.select(
        [
            (columns["prefill_requests"] > 0) & (columns["decode_requests"] > 0),
            columns["prefill_requests"] > 0,
            columns["decode_requests"] > 0,
        ],
        [2, 0, 1],
        default=3,
    )[inside]
    starts = np.maximum(columns["start_ms"][inside], start_ms)
    ends = np.minimum(columns["end_ms"][inside], end_ms)
    # A worker is known by the number of its fleet and its id: the fleets are drawn one below the other.
    fleets = columns["fleet"] if "fleet" in columns else np.zeros(len(inside), dtype=np.int64)
    workers = fleets[inside] * MAX_ID + columns["worker_id"][inside]
    lives = {
        place * MAX_ID + life.worker_id: life
        for place, fleet in enumerate(result.records.fleets)
        for life in lifespans(fleet.changes, result.end_ms)
        if life.until_ms >= start_ms and life.since_ms <= end_ms
    }
    names = np.array(sorted(lives.keys() | set(workers.tolist())), dtype=np.int64)
    unit_ms, unit = time_unit(end_ms)
    places = np.arange(len(names))
    if result.records.is_disaggregated:
        places += names >= MAX_ID  # a row for transfers lies between the fleets
    handles = _lives(
        ax, lives, dict(zip(names.tolist(), places.tolist(), strict=True)), (start_ms, end_ms), unit_ms
    )
    rows = places[np.searchsorted(names, workers)]
    label = f"time ({unit})"
    if len(starts) <= MAX_BARS:
        _bars(ax, starts / unit_ms, ends / unit_ms, rows, kinds)
    else:
        _shares(ax, starts, ends, rows, kinds, np.linspace(start_ms, end_ms, SAMPLES + 1), unit_ms)
        label += f"; bar height: share of each {duration_text((end_ms - start_ms) / SAMPLES)}"
    shown = [
        Patch(color=colour, label=name) for kind, (name, colour) in enumerate(KINDS) if (kinds == kind).any()
    ]
    ax.set_xlim(start_ms / unit_ms, end_ms / unit_ms)
    ax.set_ylim(places.max(initial=0) + 0.5, -0.5)
    ticks = np.arange(0, len(names), -(-len(names) // MAX_NAMES) or 1)
    of_fleet = (
        [f"{fleet.name} " for fleet in result.records.fleets] if result.records.is_disaggregated else [""]
    )
    labels = {
        int(places[at]): f"{of_fleet[names[at] // MAX_ID]}{names[at] % MAX_ID}" for at in ticks.tolist()
    }
    if result.records.is_disaggregated:
        between = int((names < MAX_ID).sum())
        of_prefill, of_decode = (
            {
                int(name % MAX_ID): int(place)
                for name, place in zip(names, places, strict=True)
                if name // MAX_ID == fleet
            }
            for fleet in (0, 1)
        )
        handles += draw_transfers(
            ax,
            result.records.requests,
            between,
            (of_prefill, of_decode),
            (start_ms, end_ms),
            unit_ms,
            SAMPLES,
        )
        labels[between] = "transfers"
    ax.set_yticks(list(labels), list(labels.values()))
    ax.set_xlabel(label)
    ax.set_ylabel("worker")
    tidy(ax)
    ax.grid(False, axis="y")
    title_and_legend(ax, title, shown + handles)
    return ax


def _boxes(left: Floats, right: Floats, top: Floats, bottom: Floats) -> Floats:
    """Corners of rectangles, one a row of the result."""
    x = np.stack([left, right, right, left], axis=-1)
    y = np.stack([bottom, bottom, top, top], axis=-1)
    return np.stack([x, y], axis=-1)


def _bars(ax: Axes, left: Floats, right: Floats, rows: NDArray[np.int64], kinds: NDArray[np.int64]) -> None:
    outline = 0.4 if len(left) <= MAX_OUTLINED_BARS else 0.0
    for kind, (_, colour) in enumerate(KINDS):
        mine = kinds == kind
        if mine.any():
            half = ROW_HEIGHT / 2
            boxes = _boxes(left[mine], right[mine], rows[mine] - half, rows[mine] + half)
            edge = "white" if outline else colour
            bars = PolyCollection(
                list(boxes), facecolor=colour, edgecolor=edge, linewidth=outline or 0.2, zorder=2
            )
            bars.set_rasterized(True)
            ax.add_collection(bars)


def _shares(
    ax: Axes,
    starts: Floats,
    ends: Floats,
    rows: NDArray[np.int64],
    kinds: NDArray[np.int64],
    edges: Floats,
    unit_ms: float,
) -> None:
    order = np.lexsort((kinds, rows))
    starts, ends, rows, kinds = starts[order], ends[order], rows[order], kinds[order]
    groups = rows * len(KINDS) + kinds
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    row, base = -1, np.empty(0)
    for begin, end in zip(first, np.append(first[1:], len(groups)), strict=True):
        if rows[begin] != row:
            row = rows[begin]
            base = np.full(len(edges) - 1, row + ROW_HEIGHT / 2)
        share = Level.of_spans(starts[begin:end], ends[begin:end], 1.0).means(edges)
        top = base - share * ROW_HEIGHT  # rows count downwards
        colour = KINDS[kinds[begin]][1]
        look: dict[str, Any] = {"baseline": base, "color": colour, "linewidth": 0.0, "zorder": 2}
        # `Axes.stairs` would also work out limits, which takes most of the time and is not needed.
        ax.add_artist(StepPatch(top, edges / unit_ms, fill=True, **look))
        base = top


def _lives(
    ax: Axes,
    lives: dict[int, Lifespan],
    places: dict[int, int],
    window_ms: tuple[float, float],
    unit_ms: float,
) -> list[Patch]:
    """Backgrounds: from when to when each worker existed; returns what to explain in the legend."""
    looks: dict[str, dict[str, Any]] = {
        "idle": {"facecolor": LIGHT_GREY, "edgecolor": "none"},
        "starting": {"facecolor": "white", "edgecolor": GREY, "hatch": "////"},
        "draining": {"facecolor": "#D2D2D2", "edgecolor": GREY, "hatch": "...."},
    }
    spans: dict[str, list[tuple[int, float, float]]] = {state: [] for state in looks}
    for name, life in lives.items():
        ready_ms = life.until_ms if life.active_ms is None else life.active_ms
        left_ms = life.until_ms if life.draining_ms is None else life.draining_ms
        for state, start_ms, end_ms in (
            ("starting", life.since_ms, ready_ms),
            ("idle", ready_ms, left_ms),
            ("draining", left_ms, life.until_ms),
        ):
            start_ms, end_ms = max(start_ms, window_ms[0]), min(end_ms, window_ms[1])
            if start_ms < end_ms:
                row = places[name]
                spans[state].append((row, start_ms / unit_ms, end_ms / unit_ms))
    handles = []
    for state, found in spans.items():
        if found:
            rows, left, right = np.array(found, dtype=np.float64).T
            boxes = _boxes(left, right, rows - 0.45, rows + 0.45)
            ax.add_collection(PolyCollection(list(boxes), linewidth=0.0, zorder=1, **looks[state]))
            handles.append(Patch(linewidth=0.0, label=state, **looks[state]))
    return handles
