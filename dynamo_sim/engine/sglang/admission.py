"""Which waiting requests a pass of an SGLang-style worker takes in (`spec 05, 8`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dynamo_sim.engine.sglang import memory
from dynamo_sim.engine.sglang.batch import RunningBatch
from dynamo_sim.engine.sglang.limits import Limits
from dynamo_sim.engine.sglang.queue import WaitingQueue
from dynamo_sim.engine.sglang.ratio import NewTokenRatio
from dynamo_sim.engine.sglang.sequence import SglangSequence
from dynamo_sim.kv.radix_cache import RadixCache
from dynamo_sim.workload.request import Request


class Chunk(NamedTuple):
    """What one request gets in a pass.

    Attributes:
        tokens: so many more of its tokens get slots, cached ones included.
        reused: tokens that need no computing: of a first chunk the cached ones, of a later one all before it.
        end: tokens that have slots then.
    """

    sequence: SglangSequence
    tokens: int
    reused: int
    end: int


class Demand(NamedTuple):
    """What a chunk asks for: tokens, charged in whole pages, and for the last one a reserve for outputs."""

    tokens: int
    charge: int
    outputs: int


class Admitted:
    """What a pass takes in.

    Attributes:
        chunks: the batch, in order.
        refused_for: tokens the head of the queue asks for while nothing but free tokens are missing; None when
            it is refused for what cannot change while the same requests run, or nobody is refused.
        out_of_memory: whether slots were missing for a request that seemed to fit.
    """

    __slots__ = ("chunks", "out_of_memory", "refused_for")

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.refused_for: int | None = None
        self.out_of_memory = False


class RemainingTokens:
    """Tokens that may still be promised in a pass.

    The reference adds up what running requests have reserved in running order, as floats. That sum is close
    to its value by whole numbers, which decides unless a comparison is too close.
    """

    __slots__ = ("_batch", "_estimate", "_margin", "_promised", "_ratio", "_whole")

    def __init__(self, batch: RunningBatch, available: int, ratio: float) -> None:
        self._batch = batch
        self._ratio = ratio
        self._whole = max(0, available - batch.slack_tokens)
        self._promised: list[int] = []
        reserve = batch.reserve_tokens * ratio
        self._estimate = self._whole - reserve
        self._margin = rounding_margin(reserve)

    def refuse(self, tokens: int) -> bool:
        """Whether at most ``tokens`` tokens are left: more have to be left than a request asks for."""
        difference = tokens - self._estimate
        if abs(difference) > self._margin:
            return difference > 0
        remaining = float(self._whole) - self._batch.reserve(self._ratio)
        for promised in self._promised:
            remaining -= float(promised)
        return tokens >= remaining

    def promise(self, tokens: int) -> None:
        """Set tokens aside for a request that was admitted."""
        self._promised.append(tokens)
        self._estimate -= tokens


def rounding_margin(reserve: float) -> float:
    """How far the reserve by whole numbers may be from the float sum in running order, with a wide margin."""
    return 1e-6 + 1e-9 * abs(reserve)


def demand(sequence: SglangSequence, chunk_tokens: float, limits: Limits) -> Demand | None:
    """What the next chunk of a waiting request asks for; None when there is no such chunk.

    Args:
        chunk_tokens: chunk budget that is left in the pass.
    """
    missing = sequence.prompt_tokens + sequence.generated - sequence.allocated_tokens
    if missing <= limits.chunk_tokens:
        tokens = missing
    else:
        tokens = min(int(chunk_tokens) // limits.page_tokens * limits.page_tokens, missing)
    if not tokens:
        return None
    outputs = 0
    if tokens == missing:
        left = sequence.max_output_tokens - sequence.generated
        outputs = left if left < limits.clip_tokens else limits.clip_tokens
    return Demand(tokens, -(-tokens // limits.page_tokens) * limits.page_tokens, outputs)


def admit(
    queue: WaitingQueue,
    cache: RadixCache,
    batch: RunningBatch,
    ratio: NewTokenRatio,
    limits: Limits,
    now_ms: float,
    note_admission: Callable[[Request, float, int], None],
) -> Admitted:
    """Take requests from the head of the queue, never past it, and give them their slots.

    Args:
        note_admission: writes an admission on its request: time in ms, and reused tokens.
    """
    admitted = Admitted()
    chunks = admitted.chunks
    seats = limits.max_sequences - len(batch.members)
    if seats <= 0:
        return admitted
    remaining = RemainingTokens(batch, cache.available, ratio.value)
    page, input_tokens, chunk_tokens = limits.page_tokens, limits.input_tokens, limits.chunk_tokens
    while queue.waiting and len(chunks) < seats:
        head = queue.waiting[0]
        demanded = demand(head, chunk_tokens, limits)
        if demanded is None:
            break
        tokens, charge, outputs = demanded
        if charge > input_tokens or charge > chunk_tokens:
            break
        if remaining.refuse(charge + outputs):
            admitted.refused_for = charge + outputs
            break
        if cache.free < tokens:
            cache.evict(tokens - cache.free)
        before = head.allocated_tokens
        take = memory.extend if before else memory.begin
        reused = take(cache, head, before + tokens)
        if reused is None:
            admitted.out_of_memory = True
            break
        queue.pop()
        end = head.allocated_tokens
        # What waits has whole pages, so nothing of its quota is left over.
        remaining.promise(-(-end // page) * page - before + outputs)
        input_tokens -= charge
        chunk_tokens -= charge
        note_admission(head.request, now_ms, reused)
        chunks.append(Chunk(head, tokens, reused, end))
        if chunk_tokens <= 0:
            break
    return admitted
