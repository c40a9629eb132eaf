"""What a reader has to know about the requests that were not served."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.workload.request import Outcome, Request


def unserved_warnings(requests: Sequence[Request], engine: EngineArgs, cap_ms: float | None) -> Iterator[str]:
    """One sentence on the rejected requests, and one on those that had not ended with the run.

    Args:
        requests: all that arrived.
        engine: what the workers are.
        cap_ms: the virtual time at which the run had to stop, in ms, or None.
    """
    arrived = len(requests)
    rejected = [request.input_tokens for request in requests if request.outcome is Outcome.REJECTED]
    if rejected:
        yield (
            f"{_of(len(rejected), arrived)} rejected: a prompt of {min(rejected):,} tokens is too long for the KV pool "
            f"of {engine.num_gpu_blocks * engine.block_size:,} tokens "
            f"(num_gpu_blocks {engine.num_gpu_blocks:,} x block_size {engine.block_size:,})"
        )
    unfinished = sum(request.outcome is None for request in requests)
    if unfinished:
        cap = (
            "when the run ended" if cap_ms is None else f"at the cap (limits.max_sim_time_ms {cap_ms:,.10g})"
        )
        yield f"{_of(unfinished, arrived)} still unfinished {cap}"


def all_rejected(requests: Sequence[Request]) -> bool:
    """Whether requests arrived and every one of them was rejected: the run has measured nothing."""
    return bool(requests) and all(request.outcome is Outcome.REJECTED for request in requests)


def _of(some: int, everyone: int) -> str:
    return f"{some:,} of {everyone:,} requests {'was' if some == 1 else 'were'}"
