"""A request as one vLLM-style worker sees it."""

from __future__ import annotations

from collections.abc import Sequence as Names

from dynamo_sim.kv.block_pool import OwnRun
from dynamo_sim.workload.request import Request


class Sequence:
    """Prompt and generated tokens of a request, and the blocks it holds (`spec 02, 3`).

    Attributes:
        request: the request it serves.
        prompt_tokens, max_output_tokens: its lengths on this worker.
        generated: tokens generated so far. Stale while the sequence is in lockstep.
        computed: tokens counted as computed. Stale while in lockstep.
        allocated: tokens for which blocks were taken. Stale while in lockstep.
        names: names of the full blocks other sequences may share, from the first on; block ``i`` is unnamed for
            ``i >= len(names)``.
        full_blocks: how many of its blocks, from the first on, have their final identity.
        own_runs: its unnamed blocks that a preemption left in the inactive set.
        running: whether it is in the worker's running list.
        preempted: whether it waits for its return after a preemption.
        emitted_ms: time of its latest token. Stale while in lockstep.
        emitted_number: number of the pass of that token, as the scheduler counts them. Stale while in lockstep.
        pinned: must be served token by token (planned output others can share, or nothing to generate).
        admission: number of its latest admission on this worker; running lists are in this order.
        origin: lockstep pass in which ``generated`` was 0; meaningful in lockstep only.
    """

    __slots__ = (
        "admission",
        "allocated",
        "computed",
        "emitted_ms",
        "emitted_number",
        "full_blocks",
        "generated",
        "max_output_tokens",
        "names",
        "origin",
        "own_runs",
        "pinned",
        "preempted",
        "prompt_tokens",
        "request",
        "running",
    )

    def __init__(self, request: Request, max_output_tokens: int, names: Names[int], block_size: int) -> None:
        self.request = request
        self.prompt_tokens = request.input_tokens
        self.max_output_tokens = max_output_tokens
        self.names = names
        self.generated = 0
        self.computed = 0
        self.allocated = 0
        self.full_blocks = request.input_tokens // block_size
        self.own_runs: list[OwnRun] | None = None
        self.running = False
        self.preempted = False
        self.emitted_ms = 0.0
        self.emitted_number = 0
        self.pinned = max_output_tokens == 0 or request.planned_output is not None
        self.admission = 0
        self.origin = 0

    @property
    def tokens(self) -> int:
        """Its length: prompt and generated tokens."""
        return self.prompt_tokens + self.generated
