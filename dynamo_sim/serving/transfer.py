"""KV on its way from a prefill worker to a decode worker (`spec 07, 8`)."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from heapq import heapreplace
from typing import TYPE_CHECKING, Protocol

from simpy.events import Event

from dynamo_sim.clock import Clock
from dynamo_sim.errors import SimulationError
from dynamo_sim.fleet.processes import EventOrder
from dynamo_sim.serving.handoff import Handoff

if TYPE_CHECKING:
    from dynamo_sim.scenario.engine_args import EngineArgs


@dataclass(frozen=True, slots=True)
class TransferTiming:
    """How long a transfer takes that has a link for itself.

    Attributes:
        bytes_per_token: KV of one token; None for transfers that take no time.
        gigabytes_per_s: bandwidth, in 1e9 bytes a second; None for transfers that take no time.
        only_missing: whether only blocks are sent that the decode worker lacks ("destination_missing").
    """

    bytes_per_token: int | None
    gigabytes_per_s: float | None
    only_missing: bool

    @classmethod
    def of(cls, prefill: EngineArgs) -> TransferTiming:
        """The timing that the arguments of the prefill workers ask for; those of the decode workers do not count."""
        return cls(
            prefill.kv_bytes_per_token,
            prefill.kv_transfer_bandwidth,
            prefill.kv_transfer_timing_mode == "destination_missing",
        )

    @property
    def is_free(self) -> bool:
        """Whether no transfer takes any time."""
        return self.bytes_per_token is None or self.gigabytes_per_s is None

    def tokens(self, handoff: Handoff) -> int:
        """Tokens whose KV is sent."""
        return handoff.missing_tokens if self.only_missing else handoff.request.input_tokens

    def delay_ms(self, tokens: int) -> float:
        """How long the KV of so many tokens takes.

        Raises:
            SimulationError: it never arrives.
        """
        if self.gigabytes_per_s == 0:
            raise SimulationError(
                "invalid handoff transfer bandwidth 0: leave it out for transfers without delay"
            )
        if self.bytes_per_token is None or self.gigabytes_per_s is None:
            return 0.0
        delay_ms = tokens * self.bytes_per_token / (self.gigabytes_per_s * 1e9) * 1000.0
        if not math.isfinite(delay_ms):
            raise SimulationError(
                f"invalid handoff transfer delay {delay_ms}: {tokens} tokens of {self.bytes_per_token} bytes at "
                f"{self.gigabytes_per_s} GB/s; raise kv_transfer_bandwidth"
            )
        return delay_ms


class Links:
    """The links over which each prefill worker sends: one transfer at a time each, first come, first served.

    Args:
        per_worker: links of a worker; None for as many as there are transfers.
    """

    def __init__(self, per_worker: int | None) -> None:
        self._per_worker = per_worker
        self._free_ms: dict[int, list[float]] = {}  # a heap a worker: when each of its links is free

    def start_ms(self, worker_id: int, now_ms: float, delay_ms: float) -> float:
        """When a transfer of a worker starts that could start now; its link is taken until it is done."""
        if self._per_worker is None:
            return now_ms
        free_ms = self._free_ms.setdefault(worker_id, [0.0] * self._per_worker)
        start_ms = max(now_ms, free_ms[0])
        heapreplace(free_ms, start_ms + delay_ms)
        return start_ms


class TransferCoordinator(Protocol):
    """Where transfers report that they are done."""

    def transfer_due(self, process: TransferProcess) -> None:
        """A transfer is done."""


class TransferProcess:
    """One transfer: waits for its end, and reports it.

    Attributes:
        handoff: whose prompt is sent.
        order: place of its end among the events of that time.
    """

    __slots__ = ("_coordinator", "handoff", "order")

    def __init__(
        self,
        clock: Clock,
        handoff: Handoff,
        done_ms: float,
        order: EventOrder,
        coordinator: TransferCoordinator,
    ) -> None:
        self.handoff = handoff
        self.order = order
        self._coordinator = coordinator
        clock.start_at_once(self._run(clock, done_ms))

    def _run(self, clock: Clock, done_ms: float) -> Generator[Event, None, None]:
        yield clock.until(done_ms)
        self._coordinator.transfer_due(self)
