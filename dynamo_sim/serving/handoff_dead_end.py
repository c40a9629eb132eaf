"""What to tell a person about two fleets that wait for each other (`spec 07, 12`)."""

from __future__ import annotations

from dynamo_sim.errors import SimulationError
from dynamo_sim.serving.side import FleetSide

MAX_WORKERS_NAMED = 2
"""Stuck workers of a fleet that are reported one by one; the others are often stuck in the same way."""


def dead_end(prefill: FleetSide, decode: FleetSide, requests: int) -> SimulationError:
    """Nothing can happen any more, and ``requests`` requests are in the system."""
    return SimulationError(
        f"the run reached a dead end with {requests} in-flight requests remaining; "
        f"prefill: {_state(prefill)}; decode: {_state(decode)}; {_remedy(prefill, decode)}"
    )


def _state(side: FleetSide) -> str:
    """What the workers of a fleet wait for."""
    reasons = []
    if side.waiting:
        reasons.append(f"{len(side.waiting)} requests wait, and no worker is active")
    if side.router.queued_count:
        nobody = "" if side.pool.active_worker_ids() else ", and no worker is active"
        reasons.append(f"{side.router.queued_count} requests wait in the router{nobody}")
    stuck = []
    for worker in side.pool.fleet.workers.values():
        handoffs, why = worker.scheduler.handoffs, worker.scheduler.stuck_reason()
        parts = [part for part in (why, handoffs.description()) if part]
        if parts:
            stuck.append(f"worker {worker.id}: {', '.join(parts)}")
    more = len(stuck) - MAX_WORKERS_NAMED
    if more > 0:
        stuck[MAX_WORKERS_NAMED:] = [f"{more} more workers are stuck"]
    return ", ".join([*reasons, *stuck]) or "nothing waits"


def _remedy(prefill: FleetSide, decode: FleetSide) -> str:
    for name, side in (("prefill", prefill), ("decode", decode)):
        if side.waiting or (side.router.queued_count and not side.pool.active_worker_ids()):
            return f"keep at least one {name} worker, or scale up before requests come"
    return "raise num_gpu_blocks of the fleet without room, or let fewer requests in with limits.concurrency"
