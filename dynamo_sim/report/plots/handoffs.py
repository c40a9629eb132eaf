"""What is on its way between a prefill and a decode fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import Patch, StepPatch
from numpy.typing import NDArray

from dynamo_sim.records.levels import Level
from dynamo_sim.records.phases import LINK, ROOM, TRANSFER, Spans, request_phases
from dynamo_sim.report.plots.style import MAGENTA, ORANGE, tidy, title_and_legend

if TYPE_CHECKING:
    from dynamo_sim.report.tables import RunTables
    from dynamo_sim.workload.request import Request

Floats = NDArray[np.float64]

MAX_LINES = 300
"""Most transfers that are drawn one by one."""


def draw_handoffs(ax: Axes, result: RunTables, edges_ms: Floats, unit_ms: float) -> None:
    """Requests that wait for room on a decode worker, and transfers in progress: means between the edges, and peaks."""
    spans = request_phases(result.records.requests)
    for phases, colour, style, name in (
        ((ROOM,), ORANGE, "-", "wait for room"),
        ((LINK, TRANSFER), MAGENTA, "--", "transfer"),
    ):
        level = _level(spans, phases, result.end_ms)
        edges = edges_ms / unit_ms
        means, peaks = level.means(edges_ms), level.peaks(edges_ms)
        ax.stairs(
            means, edges, color=colour, linestyle=style, linewidth=1.5, baseline=None, label=f"{name}, mean"
        )
        ax.stairs(peaks, edges, fill=True, color=colour, alpha=0.22, linewidth=0, label=f"{name}, peak")
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("requests")
    tidy(ax)
    title_and_legend(ax, "Between the fleets: prompts that wait for a decode worker's room, and transfers")


def _level(spans: Spans, phases: tuple[str, ...], end_ms: float) -> Level:
    """How many requests are in one of the phases; what has no end goes on to the end of the run."""
    starts, ends = (
        np.concatenate([spans[phase][which] for phase in phases if phase in spans] or [np.empty(0)])
        for which in (0, 1)
    )
    begun = ~np.isnan(starts)
    return Level.of_spans(starts[begun], np.where(np.isnan(ends[begun]), end_ms, ends[begun]), 1.0)


def draw_transfers(
    ax: Axes,
    requests: list[Request],
    row: float,
    rows_of_workers: tuple[dict[int, int], dict[int, int]],
    window_ms: tuple[float, float],
    unit_ms: float,
    samples: int,
) -> list[Patch]:
    """A row with the transfers in progress; a few are also lines from the prefill worker to the decode worker.

    Args:
        ax: a Gantt chart.
        requests: of the run.
        row: where the row is.
        rows_of_workers: row of each worker of the prefill fleet and of the decode fleet, by its id.
        window_ms: from when to when, in ms.
        unit_ms: of the time axis.
        samples: parts of the window whose means are drawn.

    Returns:
        What to explain in the legend; nothing where no transfer took any time.
    """
    moved = [
        (start, done, handoff.prefill_worker_id, handoff.decode_worker_id)
        for request in requests
        if (handoff := request.handoff) is not None
        and (start := handoff.transfer_started_ms) is not None
        and (done := handoff.transfer_done_ms) is not None
        and start < done
        and done > window_ms[0]
        and start < window_ms[1]
    ]
    if not moved:
        return []
    starts, ends = (np.array([transfer[which] for transfer in moved], dtype=np.float64) for which in (0, 1))
    edges = np.linspace(*window_ms, samples + 1)
    level = Level.of_spans(starts, ends, 1.0)
    means = level.means(edges)
    heights = means / max(float(means.max()), 1.0)
    base = np.full(samples, row + 0.36)
    look: dict[str, Any] = {"baseline": base, "color": MAGENTA, "linewidth": 0.0, "zorder": 2}
    ax.add_artist(StepPatch(base - heights * 0.72, edges / unit_ms, fill=True, **look))
    if len(moved) <= MAX_LINES:
        prefill, decode = rows_of_workers
        lines = [
            [(start / unit_ms, prefill[source] + 0.36), (done / unit_ms, decode[destination] - 0.36)]
            for start, done, source, destination in moved
            if source in prefill and destination in decode
        ]
        ax.add_collection(LineCollection(lines, colors=MAGENTA, linewidths=0.9, zorder=3))
    return [Patch(color=MAGENTA, label=f"KV transfers (peak {int(level.values.max())})")]
