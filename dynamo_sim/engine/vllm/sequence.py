"""A request as one vLLM-style worker sees it."""

from __future__ import annotations

from collections.abc import Sequence as Names

from dynamo_sim.kv.allocation import Lease
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.kv.block_table import BlockTable
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.workload.request import Request


class Sequence:
    """Prompt and generated tokens of a request, and the blocks it holds (`spec 02, 3`).

    Attributes:
        request: the request it serves.
        prompt_tokens, max_output_tokens: its lengths on this worker.
        final_blocks: blocks it holds with its last token.
        generated: tokens generated so far. Stale while the sequence is in lockstep.
        computed: tokens counted as computed. Stale while in lockstep.
        table: the blocks it holds. Stale while in lockstep.
        running: whether it is in the worker's running list.
        preempted: whether it waits for its return after a preemption.
        lease: what it waits for after a pool answered `BlockedUntil`.
        is_source: its blocks are kept for another worker when it has its last token (`spec 07, 5.1`).
        token_by_token: it cannot join a lockstep group (planned output others can share, or nothing to generate).
        emitted_ms: time of its latest token. Stale while in lockstep.
        emitted_pass: number of the pass of that token. Stale while in lockstep.
        origin: group pass in which ``generated`` was 0; meaningful in lockstep only.
    """

    __slots__ = (
        "computed",
        "emitted_ms",
        "emitted_pass",
        "final_blocks",
        "generated",
        "is_source",
        "lease",
        "max_output_tokens",
        "origin",
        "preempted",
        "prompt_tokens",
        "request",
        "running",
        "table",
        "token_by_token",
    )

    def __init__(self, request: Request, max_output_tokens: int, names: Names[int], block_size: int) -> None:
        self.request = request
        self.prompt_tokens = request.input_tokens
        self.max_output_tokens = max_output_tokens
        self.final_blocks = -(-(request.input_tokens + max_output_tokens) // block_size)
        self.generated = 0
        self.computed = 0
        self.table = BlockTable(names, request.input_tokens // block_size)
        self.is_source = False
        self.running = False
        self.preempted = False
        self.lease: Lease | None = None
        self.token_by_token = max_output_tokens == 0 or request.planned_output is not None
        self.emitted_ms = 0.0
        self.emitted_pass = 0
        self.origin = 0

    @property
    def tokens(self) -> int:
        """Its length: prompt and generated tokens."""
        return self.prompt_tokens + self.generated

    @property
    def is_blocked(self) -> bool:
        """Whether the blocks it waits for are still on their way out of the pool (`spec 11, 9`)."""
        if self.lease is not None and self.lease.is_over:
            self.lease = None
        return self.lease is not None


def sequence_of(
    request: Request, max_output_tokens: int, pool: BlockPool, interner: PrefixInterner
) -> Sequence:
    """A request as a worker with that pool sees it, when it comes there."""
    names = interner.names_of(request) if pool.caching else ()
    names = pool.all_names(names, (request.input_tokens + max_output_tokens) // pool.block_size)
    return Sequence(request, max_output_tokens, names, pool.block_size)
