"""How the requests of a workload are offered: open or closed loop, and what goes with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loop:
    """The conditions under which a workload is offered (`spec 08, 2 and 9`).

    Attributes:
        cap: requests or sessions active at a time in a closed loop; None for an open loop.
        ratio: arrival speed-up of an open loop.
        stamp_at_take: whether arrivals of conversations are stamped with the instant they are taken, as the one-worker
            runtime does in a closed loop.
        as_sessions: whether single requests are offered as sessions of one turn: they are in runs with a controller.
        disaggregated: whether prefill and decode are separate fleets, for which some formats are refused.
    """

    cap: int | None = None
    ratio: float = 1.0
    stamp_at_take: bool = False
    as_sessions: bool = False
    disaggregated: bool = False
