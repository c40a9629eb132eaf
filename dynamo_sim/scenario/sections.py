"""The short sections of a scenario: the fleets, the scaling script, limits, the SLA and the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from dynamo_sim.limits import MAX_WORKERS
from dynamo_sim.scenario.autoscaler.parts import Workers
from dynamo_sim.scenario.base import NonNegative, PositiveCount, Spec
from dynamo_sim.scenario.engine_args import EngineArgs
from dynamo_sim.scenario.startup import Startup


class Fleet(Spec):
    """The workers a run starts with."""

    workers: Annotated[int, Field(ge=1, le=MAX_WORKERS)] = 1
    """Workers at time 0, all ready."""

    engine: EngineArgs = EngineArgs()
    """What each of them is."""

    offload: bool = False
    """Copy evicted KV blocks to the cache tiers that engine describes (num_g2_blocks and others), and back."""

    startup: Startup | None = None
    """How long added workers take to start, when it differs from one to the next; instead of engine.startup_time."""

    drain_grace_s: NonNegative | None = None
    """Seconds a worker that is taken away may go on with what it has; then it is killed and its requests fail.
    null = it finishes everything."""

    @property
    def expected_startup_s(self) -> float:
        """How long a new worker is expected to take until it serves."""
        return (self.engine.startup_time or 0.0) if self.startup is None else self.startup.expected_s


class RoleFleet(Fleet):
    """The workers of one of two fleets; a worker's part follows from its fleet, unless it is written down."""

    role: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _take_role(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        engine = data.get("engine", {})
        if not isinstance(engine, Mapping) or engine.keys() & {"worker_type", "is_prefill", "is_decode"}:
            return data
        return {**data, "engine": {**engine, "worker_type": cls.role}}


class PrefillFleet(RoleFleet):
    """The workers that compute prompts, and hand them over to the decode workers."""

    role = "prefill"


class DecodeFleet(RoleFleet):
    """The workers that generate the tokens of prompts that the prefill workers have computed."""

    role = "decode"


class Transfer(Spec):
    """What KV transfers from prefill to decode workers share; how long one takes is said by prefill.engine."""

    links: PositiveCount | None = None
    """Transfers of one prefill worker at the same time, each at full bandwidth; more wait their turn.
    null = any number, as in the reference."""


class ScalingStep(Spec):
    """The size of the fleet, or of the two fleets, from one time on."""

    at_ms: NonNegative
    """When, in virtual time."""

    workers: Workers | None = None
    """Desired workers from then on, starting ones included; null = change nothing."""

    prefill: Workers | None = None
    """Desired prefill workers, where prefill and decode are separate fleets; null = change nothing."""

    decode: Workers | None = None
    """Desired decode workers, where prefill and decode are separate fleets; null = change nothing."""


class Limits(Spec):
    """What bounds a run."""

    max_sim_time_ms: NonNegative | None = None
    """Virtual time at which the run stops; only for traces, and not with scaling. null = run to the end."""

    concurrency: PositiveCount | None = None
    """Closed loop with that many requests, or conversations, at once; null = open loop."""

    max_stretch_passes: PositiveCount = 1_000_000
    """Most passes computed in one step; 1 computes each on its own. Changes the speed, never an answer."""


class Sla(Spec):
    """Latency bounds a request must keep to count as good; null = no bound."""

    ttft_ms: NonNegative | None = None
    """Time to first token."""

    itl_ms: NonNegative | None = None
    """Mean time between tokens."""

    e2e_ms: NonNegative | None = None
    """Time from arrival to last token."""

    @property
    def is_given(self) -> bool:
        """Whether there is any bound, so that goodput is reported."""
        return not (self.ttft_ms is None and self.itl_ms is None and self.e2e_ms is None)


class Report(Spec):
    """What is recorded and written."""

    passes: bool = True
    """Record every forward pass."""

    routing: bool = False
    """Record every decision of the router, with what it weighed."""

    requests_format: Literal["parquet", "csv"] = "parquet"
    """File format of the rows of requests and passes."""

    plots: bool = True
    """Draw the pictures."""
