"""Stabilisation windows over the recommendations (`spec 10, 2.6`)."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_sim.autoscaling.kubernetes.hpa.spec import HpaState
from dynamo_sim.scenario.autoscaler.behavior import RuleSpec


def stabilise_default(state: HpaState, recommended: int, now_s: float, window_s: float) -> int:
    """Without ``behavior``: the largest recommendation of the window. Records it."""
    cutoff = now_s - window_s
    stabilised = recommended
    slot = None
    for index, (replicas, at_s) in enumerate(state.history):
        if at_s < cutoff:
            slot = index
        else:
            stabilised = max(stabilised, replicas)
    _record(state.history, slot, (recommended, now_s))
    return stabilised


def stabilise_with_behavior(
    state: HpaState, current: int, recommended: int, now_s: float, up_window_s: float, down_window_s: float
) -> int:
    """With ``behavior``: up to the smallest of the up window, down to the largest of the down window.

    An entry exactly as old as its window does not count, but is not forgotten yet either. Records it as it came in.
    """
    up_cutoff, down_cutoff = now_s - up_window_s, now_s - down_window_s
    lowest = highest = recommended
    slot = None
    for index, (replicas, at_s) in enumerate(state.history):
        if at_s > up_cutoff:
            lowest = min(lowest, replicas)
        if at_s > down_cutoff:
            highest = max(highest, replicas)
        if at_s < up_cutoff and at_s < down_cutoff:
            slot = index
    _record(state.history, slot, (recommended, now_s))
    return min(max(current, lowest), highest)


def note_change(
    events: list[tuple[int, float]], size: int, now_s: float, rules: Sequence[RuleSpec] | None
) -> None:
    """Note a change in one direction, in the slot of the last one older than every period (`spec 10, 2.8`)."""
    cutoff = now_s - max((rule.period_s for rule in rules or ()), default=0.0)
    slot = max((index for index, (_, at_s) in enumerate(events) if at_s < cutoff), default=None)
    _record(events, slot, (size, now_s))


def _record(entries: list[tuple[int, float]], slot: int | None, entry: tuple[int, float]) -> None:
    if slot is None:
        entries.append(entry)
    else:
        entries[slot] = entry
