"""Workers that do one half of the work, and the durations of their passes (`spec 04, 7`)."""

from __future__ import annotations

from enum import Enum

from dynamo_sim.timing.pass_timing import PassTiming


class Stage(Enum):
    """What the workers of a fleet do."""

    AGGREGATED = "Aggregated"
    PREFILL = "Prefill"
    """They compute prompts and hand them over. Their tokens are hidden."""
    DECODE = "Decode"
    """They get prompts handed over, and make the tokens."""


class PrefillOnly:
    """A prefill worker: its tokens come with the end of their prompts, and take no time."""

    def __init__(self, timing: PassTiming) -> None:
        self.context_matters = False
        self.warnings = timing.warnings
        self.prefill_ms = timing.prefill_ms

    def decode_ms(self, kv_tokens: int, batch: int, context_tokens: int) -> float:
        return 0.0


class DecodeOnly:
    """A decode worker: prompts come with their blocks, and what has to be computed again takes no time."""

    def __init__(self, timing: PassTiming) -> None:
        self.context_matters = timing.context_matters
        self.warnings = timing.warnings
        self.decode_ms = timing.decode_ms

    def prefill_ms(self, batch: int, new_tokens: int) -> float:
        return 0.0


def timing_of_role(timing: PassTiming, worker_type: str) -> PassTiming:
    """Durations for a worker of type "aggregated", "prefill" or "decode"."""
    if worker_type == "prefill":
        return PrefillOnly(timing)
    return DecodeOnly(timing) if worker_type == "decode" else timing
