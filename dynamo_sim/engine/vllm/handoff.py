"""The handoff commands of a vLLM-style worker (`spec 07, 5`)."""

from __future__ import annotations

from collections.abc import Callable

from dynamo_sim.engine.handoff import Cancelled, Handoffs, find
from dynamo_sim.engine.vllm.batch import RunningBatch
from dynamo_sim.engine.vllm.queue import WaitingQueue
from dynamo_sim.engine.vllm.sequence import Sequence, sequence_of
from dynamo_sim.errors import SimulationError
from dynamo_sim.kv.allocation import BlockedUntil
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.workload.request import Request


class VllmHandoffs(Handoffs[Sequence]):
    """Sources a prefill worker keeps, and destinations of a decode worker.

    Args:
        batch, queue, pool: what runs, what waits, and the blocks of both.
        interner: names the blocks of prompts.
        max_sequences: most running sequences; while so many run, no room is set aside.
        engine_type: "vllm"; the reference does not hand over for others.

    Attributes:
        cancel_parked: forgets a request whose blocks come from a lower cache tier; whether there was one.
    """

    def __init__(
        self,
        batch: RunningBatch,
        queue: WaitingQueue,
        pool: BlockPool,
        interner: PrefixInterner,
        max_sequences: int,
        engine_type: str,
    ) -> None:
        super().__init__(queue.returned)
        self.cancel_parked: Callable[[Request], bool] = lambda request: False
        self._batch = batch
        self._queue = queue
        self._pool = pool
        self._interner = interner
        self._max_sequences = max_sequences
        self._engine_type = engine_type

    @property
    def holds_blocks(self) -> bool:
        """Whether blocks are held here for requests that are neither waiting nor running."""
        return bool(self.kept or self.destinations.reserved)

    # ------------------------------------------------------------ the prefill side

    def submit_prefill(self, request: Request) -> None:
        self._refuse_other_engines()
        planned = request.planned_output
        sequence = self._sequence(request, 1 if planned is None else len(planned))
        sequence.is_source = True
        self._queue.append(sequence)

    def ended(self, sequence: Sequence) -> None:
        """A running sequence has its last token: its blocks are kept if they are a source, and free otherwise."""
        self.generation += 1
        if sequence.is_source:
            self.kept[sequence.request] = sequence
        else:
            self._pool.release(sequence.table)

    def release_source(self, request: Request) -> None:
        self._pool.release(self.kept.pop(request).table)
        self.generation += 1

    # ------------------------------------------------------------ the decode side

    def reserve_destination(self, request: Request) -> bool:
        self._refuse_other_engines()
        sequence = self._sequence(request, request.output_tokens)
        if self._blocks(sequence) > self._pool.num_blocks:
            return False
        self.destinations.accept(sequence)
        return True

    def activate_destination(self, request: Request) -> None:
        sequence = self.destinations.drop_reserved(request)
        assert sequence is not None
        pool, active = self._pool, self._pool.active
        pool.fill(sequence.table, self._blocks(sequence))
        if pool.active < active:
            self.generation += 1
        sequence.computed = sequence.prompt_tokens
        self._queue.append(sequence)

    def cancel_destination(self, request: Request) -> Cancelled:
        if self.destinations.drop_pending(request):
            return Cancelled.QUEUED
        sequence = self.destinations.drop_reserved(request)
        if sequence is None:
            return self._drop(request)
        self._pool.abandon(sequence.table, self._blocks(sequence) - sequence.table.held_blocks)
        self.generation += 1
        return Cancelled.QUEUED

    # ------------------------------------------------------------ inside

    def _sequence(self, request: Request, output_tokens: int) -> Sequence:
        return sequence_of(request, output_tokens, self._pool, self._interner)

    def _blocks(self, sequence: Sequence) -> int:
        """Blocks of a prompt."""
        return -(-sequence.prompt_tokens // self._pool.block_size)

    def _set_aside(self, sequence: Sequence) -> int | None:
        if len(self._batch.running) >= self._max_sequences:
            return None
        if sequence.is_blocked:
            return None
        missing = self._pool.reserve(sequence.table, self._blocks(sequence))
        if isinstance(missing, BlockedUntil):
            sequence.lease = missing.lease
            return None
        return None if missing is None else missing * self._pool.block_size

    def _drop(self, request: Request) -> Cancelled:
        """Take out a request that waits or runs."""
        sequence = find(self._queue.waiting, request)
        if sequence is not None:
            self._queue.remove(sequence)
        elif self.cancel_parked(request):
            return Cancelled.QUEUED
        else:
            self._batch.dissolve(None)
            sequence = find(self._batch.running, request)
            if sequence is None:
                return Cancelled.NOTHING
            self._batch.remove(sequence)
        if sequence.table.held_blocks:
            self._pool.release(sequence.table)
            self.generation += 1
        return Cancelled.QUEUED

    def _refuse_other_engines(self) -> None:
        if self._engine_type != "vllm":
            raise SimulationError(f"disaggregated replay does not support {self._engine_type} workers")

    # ------------------------------------------------------------ for tests

    def unfilled_blocks(self) -> int:
        """Slots that are set aside for KV that has not come."""
        return sum(self._blocks(s) - s.table.held_blocks for s in self.destinations.reserved.values())
