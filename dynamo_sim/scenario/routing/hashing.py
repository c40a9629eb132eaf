"""Modes that hash something of a request onto a ring of workers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dynamo_sim.scenario.base import PositiveCount, Spec

PointsPerWorker = Annotated[int, Field(ge=8, le=4096, multiple_of=8)]


class PrefixHashRouting(Spec):
    """Prompts that begin alike go to one worker, as long as it is not much fuller than the others."""

    mode: Literal["prefix_hash"]
    """How workers are chosen."""

    prefix_blocks: PositiveCount = 1
    """So many first blocks of a prompt are hashed, or as many whole ones as it has; blocks are those of the engine."""

    load_factor: Annotated[float, Field(ge=1, le=1000)] = 1.25
    """A worker may have so many times the mean of the requests in flight; then the next one on the ring is asked."""

    points_per_worker: PointsPerWorker = 256
    """Points of each worker on the ring; the more, the more evenly prefixes are shared out. A multiple of 8."""


class SessionAffinityRouting(Spec):
    """All turns of a session go to one worker; requests without a session to the one with the fewest in flight."""

    mode: Literal["session_affinity"]
    """How workers are chosen."""

    by: Literal["hash", "first_turn"] = "hash"
    """hash: by the name of the session; first_turn: where its first turn went, which is the least loaded worker."""

    points_per_worker: PointsPerWorker = 256
    """Points of each worker on the ring of hashes; the more, the more evenly sessions are shared out."""
