"""Where the time of requests went: the mean duration of each phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.records.phases import HOLD, LINK, kept_on_both_sides, request_phases
from dynamo_sim.text import duration_text
from dynamo_sim.workload.request import Outcome, Request

if TYPE_CHECKING:
    import pandas as pd


def column_of(phase: str) -> str:
    """The column of a phase: ``wait_for_room_ms`` of ``wait for room``."""
    return f"{phase.replace(' ', '_')}_ms"


def phases_frame(requests: Sequence[Request]) -> pd.DataFrame:
    """One row a request that arrived, with its ``index`` and the duration of each phase in ms (`request_phases`).

    The phases add up to the E2E latency. Where there are two fleets, ``source_hold_ms`` is how long the prefill worker
    kept the KV after it had computed it; that time lies within the other phases.
    """
    import pandas as pd

    frame = pd.DataFrame({"index": np.fromiter((r.index for r in requests), np.int64, len(requests))})
    for phase, (start_ms, end_ms) in request_phases(requests).items():
        frame[column_of(phase)] = end_ms - start_ms
    if HOLD in (kept := kept_on_both_sides(requests)):
        start_ms, end_ms = kept[HOLD]
        frame["source_hold_ms"] = end_ms - start_ms
    return frame


def durations(requests: Sequence[Request]) -> dict[str, NDArray[np.float64]]:
    """How long each phase of the completed requests took, in ms; without phases that nobody ever has."""
    completed = [r for r in requests if r.outcome is Outcome.COMPLETED]
    spent = {phase: end_ms - start_ms for phase, (start_ms, end_ms) in request_phases(completed).items()}
    return {phase: ms for phase, ms in spent.items() if len(ms) and (phase != LINK or ms.any())}


def breakdown_frame(requests: Sequence[Request]) -> pd.DataFrame:
    """One row a phase of the requests that were completed.

    Columns: ``phase``; ``mean_ms``, ``p50_ms``, ``p99_ms``; ``share`` of the mean E2E latency.
    """
    import pandas as pd

    spent = durations(requests)
    frame = pd.DataFrame({"phase": list(spent)})
    frame["mean_ms"] = np.array([ms.mean() for ms in spent.values()], dtype=np.float64)
    for name, percent in (("p50_ms", 50.0), ("p99_ms", 99.0)):
        frame[name] = np.array([np.percentile(ms, percent) for ms in spent.values()], dtype=np.float64)
    frame["share"] = frame["mean_ms"] / (frame["mean_ms"].sum() or 1.0)
    return frame


def mean_phases(requests: Sequence[Request]) -> dict[str, float]:
    """Mean duration in ms of each phase of the completed requests, by its name."""
    return {phase: float(ms.mean()) for phase, ms in durations(requests).items()}


def breakdown_line(means: Mapping[str, float]) -> str:
    """The mean phases in one line; empty where no request was completed.

    ``Mean time of a request: queue 8.1 ms, prefill 96 ms, wait for room 0 ms, transfer 12 ms, decode 2.1 s``
    """
    parts = [f"{phase} {duration_text(ms) if ms >= 0.0005 else '0 ms'}" for phase, ms in means.items()]
    return f"Mean time of a request: {', '.join(parts)}" if parts else ""
