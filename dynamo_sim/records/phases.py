"""What the time of a request consists of, from its arrival to its last token."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from dynamo_sim.workload.request import Request

Floats = NDArray[np.float64]
Spans = dict[str, tuple[Floats, Floats]]
"""Start and end in ms of each phase, by its name, one element a request; NaN where it was not reached."""

QUEUE = "queue"
PREFILL = "prefill"
ROOM = "wait for room"
LINK = "wait for link"
TRANSFER = "transfer"
BATCH = "wait for batch"
DECODE = "decode"

HOLD = "held by the prefill worker"
ROOM_KEPT = "room kept by the decode worker"


def request_phases(requests: Sequence[Request]) -> Spans:
    """The phases that follow one another from the arrival to the last token: their durations add up to E2E latency.

    With one fleet: queue, prefill (to the first token), decode. With two fleets (`spec 07, 9`):

    * queue: until a prefill worker admits it; prefill: until its prompt is computed;
    * wait for room: until a decode worker has set blocks aside, after prefill (vLLM) or before the queue (SGLang);
    * wait for link: until the transfer starts; transfer: until the KV has arrived;
    * wait for batch: until its first decode pass starts; decode: until its last token.
    """
    arrived, admitted, first_token, last_token = (
        _times(requests, name) for name in ("arrival_ms", "first_admit_ms", "first_token_ms", "last_token_ms")
    )
    if not is_handed_over(requests):
        return {
            QUEUE: (arrived, admitted),
            PREFILL: (admitted, first_token),
            DECODE: (first_token, last_token),
        }
    held, reserved, started, done, joined = (
        _times(requests, f"handoff.{name}_ms")
        for name in (
            "source_held",
            "destination_reserved",
            "transfer_started",
            "transfer_done",
            "decode_admit",
        )
    )
    destination_first = reserved <= admitted
    ready = np.fmax(held, reserved)  # both sides are there
    return {
        QUEUE: (np.where(destination_first, reserved, arrived), admitted),
        PREFILL: (admitted, held),
        ROOM: (np.where(destination_first, arrived, held), reserved),
        LINK: (ready, started),
        TRANSFER: (started, done),
        BATCH: (done, joined),
        DECODE: (joined, last_token),
    }


def kept_on_both_sides(requests: Sequence[Request]) -> Spans:
    """How long the prefill worker kept the KV of a prompt, and the decode worker room for it; empty with one fleet."""
    if not is_handed_over(requests):
        return {}
    return {
        name: (_times(requests, f"handoff.{since}_ms"), _times(requests, f"handoff.{until}_ms"))
        for name, since, until in (
            (HOLD, "source_held", "source_released"),
            (ROOM_KEPT, "destination_reserved", "destination_activated"),
        )
    }


def is_handed_over(requests: Sequence[Request]) -> bool:
    """Whether prefill and decode of these requests are done by two fleets."""
    return bool(requests) and requests[0].handoff is not None


def _times(requests: Sequence[Request], name: str) -> Floats:
    return np.fromiter(map(attrgetter(name), requests), object, len(requests)).astype(np.float64)
