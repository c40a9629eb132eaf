"""How large a fleet was, in a few numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dynamo_sim.records.fleet_changes import FleetChange
from dynamo_sim.records.records import FleetRecords
from dynamo_sim.text import counted


@dataclass(frozen=True)
class FleetUse:
    """Workers that are active or starting; those that leave do not count.

    Attributes:
        fewest: at any time.
        most: at any time.
        mean: over the run.
        changes: times at which their number became another.
    """

    fewest: int
    most: int
    mean: float
    changes: int


def fleet_use(history: Sequence[FleetChange], end_ms: float) -> FleetUse:
    """The sizes of a fleet from 0 to ``end_ms``; of several changes at one time the last one counts."""
    sizes = {change.at_ms: change.active + change.starting for change in history if change.at_ms <= end_ms}
    counts = list(sizes.values()) or [0]
    times = [*sizes, end_ms]
    spans_ms = [until - since for since, until in pairwise(times)]
    total_ms = sum(spans_ms)
    weighted = sum(count * span for count, span in zip(counts, spans_ms, strict=False))
    return FleetUse(
        fewest=min(counts),
        most=max(counts),
        mean=weighted / total_ms if total_ms else float(counts[-1]),
        changes=sum(before != after for before, after in pairwise(counts)),
    )


def fleet_line(fleets: Sequence[FleetRecords], uses: Mapping[str, FleetUse], gpu_hours: float) -> str:
    """The sizes of all fleets, and what two of them cost each; empty where one fleet never changed.

    ``Fleet: 2 to 15 workers, 9.3 on average, 5 changes, 1.83 GPU hours``
    ``Prefill: 2 workers, 0.67 GPU hours; decode: 2 to 6 workers, 4.1 on average, 3 changes, 1.16 GPU hours; 1.83 GPU
    hours in all``
    """
    texts = {name: _size_text(use) for name, use in uses.items()}
    if len(uses) < 2:
        changing = [text for name, text in texts.items() if uses[name].changes]
        return f"Fleet: {changing[0]}, {gpu_hours:,.2f} GPU hours" if changing else ""
    line = "; ".join(f"{fleet.name}: {texts[fleet.name]}, {_hours_text(fleet)}" for fleet in fleets)
    return f"{line[:1].upper()}{line[1:]}; {gpu_hours:,.2f} GPU hours in all"


def _hours_text(fleet: FleetRecords) -> str:
    """Hours of its GPUs, and of its workers where they have more than one each."""
    workers = "" if fleet.gpus_per_worker == 1 else f"{fleet.worker_hours:,.2f} worker hours, "
    return f"{workers}{fleet.gpu_hours:,.2f} GPU hours"


def _size_text(use: FleetUse) -> str:
    if not use.changes:
        return counted(use.most, "worker")
    return f"{use.fewest:,} to {use.most:,} workers, {use.mean:,.1f} on average, {counted(use.changes, 'change')}"
