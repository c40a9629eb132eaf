"""What a request passes on its way through two fleets (`spec 07, 14`)."""

from __future__ import annotations


class HandoffMilestones:
    """Where the prompt of one request was, and when, in a disaggregated run.

    What it shares with a request of an aggregated run stands on the `Request`: its prefill admission is
    ``first_admit_ms``, the reuse of its prefill side ``first_reused_tokens`` and ``reused_tokens``, its tokens are
    those of the decode side. Times are in ms of virtual time, lengths in tokens; None means "not reached".

    Attributes:
        prefill_worker_id, decode_worker_id: the worker of each fleet.
        prefill_overlap_tokens, decode_overlap_tokens: prompt tokens the router of each fleet found in the cache of the
            worker it chose; 0 for a router that does not look.
        source_held_ms: the prompt is computed, and the prefill worker keeps it.
        destination_reserved_ms: the decode worker has set room aside.
        transfer_started_ms, transfer_done_ms: the KV is on its way; it has arrived.
        transfer_tokens: tokens whose KV was sent.
        destination_activated_ms: the prompt belongs to the decode worker and waits for a place in its batch.
        decode_admit_ms: start of its first decode pass.
        source_released_ms: the prefill worker has given up its copy; may lie after the last token.
        decode_reused_tokens: most prompt tokens found in the cache at a return after a preemption; 0 without any.
    """

    __slots__ = (
        "decode_admit_ms",
        "decode_overlap_tokens",
        "decode_reused_tokens",
        "decode_worker_id",
        "destination_activated_ms",
        "destination_reserved_ms",
        "prefill_overlap_tokens",
        "prefill_worker_id",
        "source_held_ms",
        "source_released_ms",
        "transfer_done_ms",
        "transfer_started_ms",
        "transfer_tokens",
    )

    def __init__(self) -> None:
        self.prefill_worker_id: int | None = None
        self.decode_worker_id: int | None = None
        self.prefill_overlap_tokens: int | None = None
        self.decode_overlap_tokens: int | None = None
        self.source_held_ms: float | None = None
        self.destination_reserved_ms: float | None = None
        self.transfer_started_ms: float | None = None
        self.transfer_done_ms: float | None = None
        self.transfer_tokens = 0
        self.destination_activated_ms: float | None = None
        self.decode_admit_ms: float | None = None
        self.source_released_ms: float | None = None
        self.decode_reused_tokens: int | None = None
