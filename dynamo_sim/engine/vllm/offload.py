"""What the lower cache tiers add to a vLLM-style worker: parked requests and stalls (`spec 11, 4 and 5`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dynamo_sim.engine.step import Step
from dynamo_sim.engine.vllm.handoff import VllmHandoffs
from dynamo_sim.engine.vllm.queue import WaitingQueue
from dynamo_sim.engine.vllm.sequence import Sequence
from dynamo_sim.kv.allocation import Allocation
from dynamo_sim.kv.block_pool import BlockPool
from dynamo_sim.kv.offload.gpu_pool import OffloadingPool
from dynamo_sim.kv.offload.swap_in import SwapIn
from dynamo_sim.kv.offload.worker_tiers import WorkerTiers
from dynamo_sim.kv.prefix import PrefixInterner
from dynamo_sim.workload.request import Request
from dynamo_sim.workload.swap_ins import SwapIns

if TYPE_CHECKING:
    from dynamo_sim.scenario.engine_args import EngineArgs


class VllmOffload:
    """Polls the tiers, and takes requests out of the queue and back while their blocks come.

    Args:
        pool, queue, handoffs: the blocks, what waits, and who else waits for blocks.
    """

    def __init__(self, pool: OffloadingPool[Sequence], queue: WaitingQueue, handoffs: VllmHandoffs) -> None:
        self._pool = pool
        self._tiers = pool.tiers
        self._queue = queue
        self._handoffs = handoffs

    @property
    def deadline_ms(self) -> float:
        return self._tiers.deadline_ms

    @property
    def has_transfers(self) -> bool:
        return self._tiers.has_transfers

    @property
    def is_quiet(self) -> bool:
        return self._tiers.is_quiet

    def poll(self, now_ms: float) -> bool:
        over = self._pool.poll(now_ms)
        if over is None:
            return False
        for swap_in in over:
            if not swap_in.is_cancelled:
                self._queue.return_to_front(swap_in.request)
                self._note(swap_in, now_ms)
        self._handoffs.generation += 1
        return True

    def _note(self, swap_in: SwapIn[Sequence], now_ms: float) -> None:
        request, size = swap_in.request.request, self._pool.block_size
        notes = request.swap_ins
        if notes is None:
            notes = request.swap_ins = SwapIns()
        notes.count += 1
        notes.waited_ms += now_ms - swap_in.parked_ms
        if not swap_in.is_stopped:
            notes.host_tokens += swap_in.host_blocks * size
            notes.disk_tokens += swap_in.disk_blocks * size
            notes.store_tokens += swap_in.store_blocks * size

    def time_is(self, now_ms: float) -> None:
        self._tiers.now_ms = now_ms

    def abandon(self) -> None:
        self._tiers.abandon()

    def parked(self) -> list[Sequence]:
        """The requests whose blocks are on their way."""
        return [swap_in.request for swap_in in self._tiers.parked if not swap_in.is_cancelled]

    def cancel(self, request: Request) -> bool:
        """Forget a parked request; whether it was one."""
        sequence = next((each for each in self.parked() if each.request is request), None)
        return sequence is not None and self._tiers.cancel(sequence)

    def swap_in(self, head: Sequence, cached_tokens: int) -> Allocation:
        """Park the head of the queue if blocks of its prompt are below; NO_ROOM where it goes on as usual."""
        size = self._pool.block_size
        return self._pool.swap_in(head, head.table, cached_tokens // size, head.prompt_tokens // size)

    def stall(self, step: Step) -> None:
        """Let a pass that takes no time last until something lands (`spec 11, 4.3`)."""
        deadline_ms = self._tiers.deadline_ms
        if step.ends_ms[0] <= step.start_ms and deadline_ms < math.inf:
            step.ends_ms[0] = max(deadline_ms, step.start_ms)
            step.progress = True


def build_pool(args: EngineArgs, interner: PrefixInterner, tiers: WorkerTiers[Sequence] | None) -> BlockPool:
    """The GPU blocks of a worker, above lower tiers where there are any."""
    size = (args.num_gpu_blocks, args.block_size, args.enable_prefix_caching)
    return BlockPool(*size) if tiers is None else OffloadingPool(*size, tiers, interner.new_names)


def build_offload(pool: BlockPool, queue: WaitingQueue, handoffs: VllmHandoffs) -> VllmOffload | None:
    """What the tiers below a pool add to its worker; None where there are none."""
    if not isinstance(pool, OffloadingPool):
        return None
    offload = VllmOffload(pool, queue, handoffs)
    handoffs.cancel_parked = offload.cancel
    return offload
