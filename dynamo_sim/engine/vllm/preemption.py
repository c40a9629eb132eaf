"""Which running request makes room for the others (`spec 02, 7`)."""

from __future__ import annotations

from typing import Protocol

from dynamo_sim.engine.vllm import dead_end
from dynamo_sim.engine.vllm.batch import RunningBatch
from dynamo_sim.engine.vllm.handoff import VllmHandoffs
from dynamo_sim.engine.vllm.pass_plan import PassPlan
from dynamo_sim.engine.vllm.queue import WaitingQueue
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.kv.block_pool import BlockPool

MAX_IDLE_PREEMPTIONS = 20_000
"""More preemptions without a token in between end a run: no load reaches that whose requests can all end."""


class Preemption(Protocol):
    """Takes a sequence out of the batch to make room.

    Attributes:
        count: preemptions so far.
    """

    count: int

    def preempt(self, plan: PassPlan, requester: Sequence | None) -> Sequence | None:
        """Preempt one sequence and return it; None when the policy forbids it.

        Args:
            plan: the pass in which there is no room.
            requester: the sequence that needs it; None for several.
        """

    def token_emitted(self) -> None:
        """A pass has emitted a token: the preemptions before it made progress."""


class NoPreemption:
    """Nobody who runs is ever preempted (TRT-LLM, `spec 02, 9`)."""

    count = 0

    def preempt(self, plan: PassPlan, requester: Sequence | None) -> Sequence | None:
        return None

    def token_emitted(self) -> None:
        pass


class Recomputation:
    """The victim loses its blocks, waits at the head of the queue, and computes all its tokens again.

    Requests that preempt themselves or each other for ever are an error, unless the run is ``capped``: then it goes on
    until its time is up, as long as the clock moves.

    Args:
        batch, queue, pool: where the victim runs, where it waits then, where its blocks are.
        handoffs: hold blocks, too, and hear that there are more now.
        fifo: whether the oldest running sequence goes first ("fifo"); else the latest one ("lifo").
        capped: whether the run ends at a time of its own.
    """

    def __init__(
        self,
        batch: RunningBatch,
        queue: WaitingQueue,
        pool: BlockPool,
        handoffs: VllmHandoffs,
        fifo: bool,
        capped: bool,
    ) -> None:
        self.count = 0
        self._batch = batch
        self._queue = queue
        self._pool = pool
        self._handoffs = handoffs
        self._fifo = fifo
        self._capped = capped
        self._count_at_token = 0  # preemptions before the latest token
        self._latest_ms = 0.0

    def preempt(self, plan: PassPlan, requester: Sequence | None) -> Sequence | None:
        """Preempt one sequence and return it; None when all of them wait for blocks that will come.

        Raises:
            SimulationError: ``requester`` would be its own victim while it has the worker to itself. It
                would come back, and preempt itself again, without end (`spec 02, 12`).
        """
        batch = self._batch
        batch.dissolve(plan)
        order = batch.running if self._fifo else reversed(batch.running)
        victim = next((sequence for sequence in order if not sequence.is_blocked), None)
        if victim is None:
            return None
        has_all_blocks = (
            len(batch.running) == 1
            and not self._handoffs.holds_blocks
            and victim.table.held_blocks == self._pool.active
        )
        if victim is requester and has_all_blocks and not self._capped:
            raise dead_end.never_finishes(victim, self._pool)
        self._note(victim, plan.now_ms)
        batch.remove(victim)
        self._pool.release(victim.table)
        self._handoffs.generation += 1
        victim.preempted = True
        victim.computed = 0
        self._queue.return_to_front(victim)
        return victim

    def token_emitted(self) -> None:
        self._count_at_token = self.count

    def _note(self, victim: Sequence, now_ms: float) -> None:
        self.count += 1
        victim.request.preemptions += 1
        if self._capped and now_ms != self._latest_ms:
            self._count_at_token = self.count
            self._latest_ms = now_ms
        if self.count - self._count_at_token > MAX_IDLE_PREEMPTIONS:
            requests = len(self._batch.running) + len(self._queue.waiting)
            if requests == 1:
                raise dead_end.never_finishes(victim, self._pool)
            raise dead_end.endless_preemption(now_ms, requests, self._pool)
