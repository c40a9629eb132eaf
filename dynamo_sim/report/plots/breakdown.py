"""Where the time went: of all requests on average, and of a single one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from numpy.typing import NDArray

from dynamo_sim.records.phases import (
    BATCH,
    DECODE,
    HOLD,
    LINK,
    PREFILL,
    QUEUE,
    ROOM,
    ROOM_KEPT,
    TRANSFER,
    kept_on_both_sides,
    request_phases,
)
from dynamo_sim.report.plots.style import (
    BROWN,
    GREY,
    INK,
    MAGENTA,
    ORANGE,
    SKY,
    VERMILION,
    say,
    tidy,
    time_unit,
    title_and_legend,
)
from dynamo_sim.text import duration_text
from dynamo_sim.workload.request import Outcome, Request

if TYPE_CHECKING:
    from dynamo_sim.report.tables import RunTables

Floats = NDArray[np.float64]

COLOURS = {
    QUEUE: GREY,
    PREFILL: VERMILION,
    ROOM: ORANGE,
    LINK: BROWN,
    TRANSFER: MAGENTA,
    BATCH: "#D2D2D2",
    DECODE: SKY,
}
HATCHES = {ROOM: "////", LINK: "....", BATCH: "\\\\\\\\"}
"""Waiting is hatched, work is not; the queue is grey alone."""

SLOWEST = 0.1
NARROWEST_LABEL = 0.09
"""Share of a bar below which a part has no room for its duration."""


def draw_breakdown(ax: Axes, result: RunTables) -> Axes:
    """Four bars: mean TTFT and mean E2E latency, of all completed requests and of the slowest tenth, by phase."""
    title = "Where the time of a request goes, on average"
    requests = [r for r in result.records.requests if r.outcome is Outcome.COMPLETED]
    if not requests:
        say(ax, title, "no request was completed")
        return ax
    spans = request_phases(requests)
    arrived = np.array([r.arrival_ms for r in requests])
    first = np.array([r.first_token_ms for r in requests], dtype=np.float64)
    last = np.array([r.last_token_ms for r in requests], dtype=np.float64)
    bars: list[tuple[str, dict[str, float]]] = []
    for name, until in (("TTFT", first), ("E2E latency", last)):
        latency = until - arrived
        spent = {
            phase: np.minimum(end, until) - np.minimum(start, until) for phase, (start, end) in spans.items()
        }
        slowest = np.argsort(latency, kind="stable")[-max(1, round(len(latency) * SLOWEST)) :]
        bars.append((f"{name}\nall", {phase: float(part.mean()) for phase, part in spent.items()}))
        bars.append(
            (f"{name}\nslowest 10 %", {phase: float(part[slowest].mean()) for phase, part in spent.items()})
        )
    shown = [phase for phase in spans if any(parts[phase] > 0.0 for _, parts in bars)]
    for row, (_, parts) in enumerate(bars):
        total, left = sum(parts.values()) or 1.0, 0.0
        for phase in shown:
            share = parts[phase] / total
            _bar(ax, row, left * 100.0, share * 100.0, phase)
            if share >= NARROWEST_LABEL:
                text = ax.text(
                    (left + share / 2) * 100.0, row, duration_text(parts[phase]), ha="center", va="center"
                )
                text.set(
                    fontsize=8.5, color=INK, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5}
                )
            left += share
        ax.text(101.0, row, duration_text(total), ha="left", va="center", fontsize=9, fontweight="bold")
    ax.set_yticks(range(len(bars)), [name for name, _ in bars])
    ax.set_ylim(len(bars) - 0.5, -0.5)
    ax.set_xlim(0.0, 112.0)
    ax.set_xticks(range(0, 101, 20))
    ax.set_xlabel("% of the mean, which stands at the right")
    tidy(ax)
    ax.grid(False, axis="y")
    title_and_legend(ax, title, [_patch(phase) for phase in shown])
    return ax


def draw_waterfall(ax: Axes, request: Request) -> Axes:
    """One row a phase of a request in the order in which they began, each from its start to its end."""
    spans = {phase: (float(s[0]), float(e[0])) for phase, (s, e) in request_phases([request]).items()}
    rows = [(phase, start, end) for phase, (start, end) in spans.items() if end >= start]
    rows = [row for row in rows if row[0] != LINK or row[2] > row[1]]
    rows.sort(key=lambda row: (row[1], row[2]))
    kept = {name: (float(s[0]), float(e[0])) for name, (s, e) in kept_on_both_sides([request]).items()}
    rows += [(name, start, end) for name, (start, end) in kept.items() if end >= start]
    title = _title(request)
    if not rows:
        say(ax, title, "it got no further than its arrival")
        return ax
    end_ms = max(end for _, _, end in rows)
    unit_ms, unit = time_unit(end_ms - request.arrival_ms)
    for row, (name, start, end) in enumerate(rows):
        left, width = (start - request.arrival_ms) / unit_ms, (end - start) / unit_ms
        _bar(ax, row, left, width, name)
        ax.annotate(
            duration_text(end - start) if end > start else "0 ms",
            (left + width, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )
    if request.first_token_ms is not None:
        at = (request.first_token_ms - request.arrival_ms) / unit_ms
        ax.axvline(at, color=INK, linestyle=(0, (1, 1.5)), linewidth=1.4, zorder=1.5)
        ax.annotate("first token", (at, -0.5), xytext=(3, -9), textcoords="offset points", fontsize=8.5)
    ax.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.75)
    ax.set_xlim(0.0, (end_ms - request.arrival_ms) / unit_ms * 1.12 or 1.0)
    ax.set_xlabel(f"time since arrival ({unit})")
    tidy(ax)
    ax.grid(False, axis="y")
    ax.set_title(title, loc="left")
    return ax


def request_of(requests: Sequence[Request], index: int) -> Request:
    """The request with this ``index``, its number in the workload.

    Raises:
        ValueError: none has arrived with it.
    """
    found = next((request for request in requests if request.index == index), None)
    if found is None:
        raise ValueError(f"no request {index!r} has arrived; result.requests['index'] has those that did")
    return found


def _title(request: Request) -> str:
    facts = [f"{request.input_tokens:,} tokens in, {request.output_tokens:,} out"]
    if (handoff := request.handoff) is not None:
        for name, worker_id in (("prefill", handoff.prefill_worker_id), ("decode", handoff.decode_worker_id)):
            if worker_id is not None:
                facts.append(f"{name} worker {worker_id}")
    elif request.worker_id is not None:
        facts.append(f"worker {request.worker_id}")
    if request.outcome is not Outcome.COMPLETED:
        facts.append("unfinished" if request.outcome is None else request.outcome.value)
    return f"Request {request.index}: {', '.join(facts)}"


def _bar(ax: Axes, row: int, left: float, width: float, name: str) -> None:
    kept = name in (HOLD, ROOM_KEPT)
    ax.barh(
        row,
        width,
        left=left,
        height=0.34 if kept else 0.62,
        color="#B8B8B8" if kept else COLOURS[name],
        hatch=HATCHES.get(name),
        edgecolor=INK if name in HATCHES else "white",
        linewidth=0.0,
        zorder=2,
    )


def _patch(phase: str) -> Patch:
    edge = INK if phase in HATCHES else "white"
    return Patch(
        facecolor=COLOURS[phase], hatch=HATCHES.get(phase), edgecolor=edge, linewidth=0.0, label=phase
    )
