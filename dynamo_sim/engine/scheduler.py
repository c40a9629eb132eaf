"""What the fleet asks of the engine inside a worker."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

from dynamo_sim.engine.gaps import GapLog
from dynamo_sim.engine.handoff import HandoffCommands
from dynamo_sim.engine.lower_tiers import LowerTiers
from dynamo_sim.engine.pass_log import PassLog
from dynamo_sim.engine.step import Step
from dynamo_sim.kv.kv_events import KvEvent
from dynamo_sim.workload.request import Request


class Scheduler(Protocol):
    """The engine of one worker: it knows no SimPy and no other worker (`spec 01, 16`).

    The life of a step is ``step = start(now, max_passes)``, perhaps `Step.cut`, then ``finish(step)``. What a
    first pass changes is changed at its start; what the passes after it change, at the finish, so that a step can
    be cut at any pass boundary in between. Observations of requests (admissions, token times) are written on the
    `Request` objects, gaps between tokens into ``gaps``.
    """

    gaps: GapLog
    records_stats: bool
    """Whether steps carry `PassStats`; off by default, they cost time."""
    pass_log: PassLog | None
    """Where the passes of finished steps are recorded; None where they are not."""
    retries_matter: bool
    """Whether a pass without progress changes anything inside, so that the number of tries counts (`spec 01, 6.3`)."""

    @property
    def lower_tiers(self) -> LowerTiers | None:
        """The cache tiers below the GPU; None where there are none."""

    @property
    def handoffs(self) -> HandoffCommands:
        """The commands of a disaggregated fleet, and what they keep beside the requests in the engine."""

    @property
    def request_count(self) -> int:
        """Requests in the engine, waiting or running."""

    @property
    def waiting_count(self) -> int:
        """Requests waiting to be admitted (preempted ones included)."""

    @property
    def waiting_tokens(self) -> int:
        """Tokens of the waiting requests: of their prompts, and what preempted ones have generated."""

    @property
    def preemptions(self) -> int:
        """Requests that lost their place so far (SGLang: retractions)."""

    def kv_tokens_at(self, step: Step | None, now_ms: float) -> int:
        """KV tokens held at ``now_ms``, at or after the start of ``step``, the one in progress."""

    @property
    def block_size(self) -> int:
        """Tokens of a KV block or page."""

    def record_passes(self, worker_id: int) -> PassLog:
        """Record passes from now on, as those of that worker."""

    @property
    def used_kv_tokens(self) -> int:
        """KV tokens held now (vLLM: whole blocks with an owner)."""

    @property
    def total_kv_tokens(self) -> int:
        """KV tokens the worker can hold."""

    def receive(self, request: Request) -> None:
        """Queue a request; it plays no part before the next pass starts."""

    def start(
        self, now_ms: float, max_passes: int, until_ms: float = math.inf, undisturbed: bool = False
    ) -> Step:
        """Begin a pass at ``now_ms``, or a stretch of at most ``max_passes`` passes.

        With ``until_ms`` the caller knows what happens to the worker next, and when: a stretch ends at the latest with
        the first pass that ends at or after it. Without it a stretch may be planned too far, and has to be cut. Until
        then nobody asks for first tokens either, so that a pass which emits some may begin a stretch.

        ``undisturbed`` says that nobody cuts the step, or looks at the worker, before ``until_ms``. Then a step may go
        on when requests end in the middle of it; what its passes change is changed at once.
        """

    def note_gaps_until(self, now_ms: float) -> None:
        """Write the gaps of passes of the step in progress that ended by ``now_ms`` into ``gaps``, before `finish`."""

    def finish(self, step: Step) -> None:
        """Carry out the passes ``step`` still has and fill in its ``signals``."""

    kv_events_from_ms: float
    """Before this time `take_kv_events` has nothing to give; infinite while nothing can come."""

    def publish_kv_events(self) -> None:
        """Publish KV events from now on; to be called before the first request."""

    def take_kv_events(self, now_ms: float, starts_included: bool) -> Iterable[KvEvent]:
        """KV events a router can have seen by ``now_ms``, and has not taken yet, in order.

        What a vLLM or TRT-LLM pass does to the cache is visible from its start on, what an SGLang pass does from its
        end on (`spec 06, 3.1`): of the step in progress, passes that have begun or ended by ``now_ms`` count. The end
        of its last pass counts once `finish` was called.

        Args:
            now_ms: at or after the start of the step in progress; before its end, or at it.
            starts_included: whether a pass of the step in progress that starts at exactly ``now_ms`` has started.
                In the first round of an instant arrivals come before the passes that start in it (`spec 06, 3.3`).
        """

    def live_requests(self) -> list[Request]:
        """Requests in the engine, waiting or running."""

    def close(self) -> None:
        """Write what running requests have generated so far on their `Request` objects (the run is over)."""

    def stuck_reason(self) -> str | None:
        """Why the requests in the engine cannot go on, for a person; None when it is empty."""
