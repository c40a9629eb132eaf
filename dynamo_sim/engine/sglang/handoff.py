"""The handoff commands of an SGLang-style worker (`spec 05, 11`; `spec 07, 5`)."""

from __future__ import annotations

from collections import deque

from dynamo_sim.engine.handoff import Cancelled, Handoffs, find
from dynamo_sim.engine.sglang import memory
from dynamo_sim.engine.sglang.batch import RunningBatch
from dynamo_sim.engine.sglang.queue import WaitingQueue
from dynamo_sim.engine.sglang.sequence import SglangSequence
from dynamo_sim.engine.token_log import TokenLog
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.kv.radix_cache import RadixCache
from dynamo_sim.workload.request import Request


class SglangHandoffs(Handoffs[SglangSequence]):
    """Sources a prefill worker keeps, and destinations of a decode worker.

    Args:
        batch, queue, cache: what runs, what waits, and the slots of both.
        tokens: where token times are written.
        interner: names the pages of prompts.

    Attributes:
        ready: activated sequences that wait for a place in the batch.
    """

    def __init__(
        self,
        batch: RunningBatch,
        queue: WaitingQueue,
        cache: RadixCache,
        tokens: TokenLog,
        interner: PrefixInterner,
    ) -> None:
        super().__init__(queue.returned)
        self.ready: deque[SglangSequence] = deque()
        self._batch = batch
        self._queue = queue
        self._cache = cache
        self._tokens = tokens
        self._interner = interner

    @property
    def goes_first(self) -> bool:
        """Whether handed-over requests wait for a place, or destinations for room: then no prompt is computed."""
        return bool(self.ready or self.destinations.pending)

    # ------------------------------------------------------------ the prefill side

    def submit_prefill(self, request: Request) -> None:
        sequence = SglangSequence(request, self._interner)
        if request.planned_output is None:
            sequence.max_output_tokens = 1
        sequence.is_source = True
        self._queue.append(sequence)

    def ended(self, sequence: SglangSequence, by_page: bool) -> None:
        """A running sequence has its last token: its slots are kept if they are a source, and released otherwise.

        Args:
            by_page: whether the pages since the latest store were stored one by one.
        """
        if sequence.is_source:
            self.kept[sequence.request] = sequence
        else:
            self.generation += 1
            memory.release(self._cache, sequence, by_page)

    def release_source(self, request: Request) -> None:
        sequence = self.kept.pop(request)
        memory.release(self._cache, sequence, by_page=not sequence.is_new)
        self.generation += 1

    # ------------------------------------------------------------ the decode side

    def reserve_destination(self, request: Request) -> bool:
        sequence = SglangSequence(request, self._interner)
        page = self._cache.page_tokens
        if -(-sequence.prompt_tokens // page) * page > self._cache.total_tokens:
            return False
        sequence.handed_over = True
        self.destinations.accept(sequence)
        return True

    def activate_destination(self, request: Request) -> None:
        sequence = self.destinations.reserved.pop(request)
        if memory.activate(self._cache, sequence):
            self.generation += 1
        self.ready.append(sequence)

    def cancel_destination(self, request: Request) -> Cancelled:
        if self.destinations.drop_pending(request):
            return Cancelled.QUEUED
        sequence = self.destinations.drop_reserved(request)
        if sequence is not None:
            page = self._cache.page_tokens
            self._free(sequence, -(-sequence.prompt_tokens // page) * page)
            return Cancelled.QUEUED
        sequence = find(self.ready, request)
        if sequence is None:
            return self._drop(request)
        self.ready.remove(sequence)
        self._queue.returned.remove(sequence.prompt_tokens)
        self._free(sequence, sequence.prompt_tokens)
        return Cancelled.QUEUED

    def admit_ready(self, max_sequences: int, now_ms: float) -> list[SglangSequence]:
        """Let activated sequences run while there are places, first come first served (`spec 07, 7`)."""
        admitted = []
        while self.ready and len(self._batch.members) < max_sequences:
            sequence = self.ready.popleft()
            self._queue.returned.remove(sequence.prompt_tokens)
            self._batch.add(sequence)
            sequence.request.note_decode_admission(now_ms, 0)
            admitted.append(sequence)
        return admitted

    # ------------------------------------------------------------ inside

    def _set_aside(self, sequence: SglangSequence) -> int | None:
        return memory.reserve(self._cache, sequence)

    def _drop(self, request: Request) -> Cancelled:
        """Take out a request that waits for its prompt to be computed, or runs."""
        sequence = find(self._queue.waiting, request)
        if sequence is not None:
            self._queue.remove(sequence)
            self._free(sequence, sequence.allocated_tokens)
            return Cancelled.QUEUED
        sequence = find(self._batch.members.values(), request)
        if sequence is None:
            return Cancelled.NOTHING
        self._batch.remove(sequence)
        if not sequence.is_new:
            self._tokens.leave((sequence,))
        self._free(sequence, sequence.tokens)
        return Cancelled.QUEUED

    def _free(self, sequence: SglangSequence, tokens: int) -> None:
        """Give up the ``tokens`` tokens that a sequence has slots for."""
        memory.drop(self._cache, sequence, tokens)
        self.generation += 1

    # ------------------------------------------------------------ for tests

    def locked(self) -> list[SglangSequence]:
        """Sequences outside the queue and the batch that use the tree."""
        return [*self.kept.values(), *self.destinations.reserved.values(), *self.ready]
