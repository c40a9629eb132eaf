"""Which waiting requests a pass of an SGLang-style worker takes in (`spec 05, 8`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dynamo_sim.engine.sglang import memory
from dynamo_sim.engine.sglang.batch import RunningBatch
from dynamo_sim.engine.sglang.sequence import SglangSequence

if TYPE_CHECKING:
    from dynamo_sim.engine.sglang.scheduler import SglangScheduler


class Piece(NamedTuple):
    """What one request gets in a pass.

    Attributes:
        tokens: so many more of its tokens get slots, cached ones included.
        reused: tokens that need no computing: of a first piece the cached ones, of a later one all before it.
        end: tokens that have slots then.
    """

    sequence: SglangSequence
    tokens: int
    reused: int
    end: int


class Demand(NamedTuple):
    """What a piece asks for: tokens, charged in whole pages, and for the last one a reserve for outputs."""

    tokens: int
    charge: int
    outputs: int


class Admission:
    """What a pass takes in.

    Attributes:
        pieces: the batch, in order.
        refused_for: tokens the head of the queue asks room for while nothing but room is missing; None when
            it is refused for what cannot change while the same requests run, or nobody is refused.
        out_of_memory: whether slots were missing for a request there was room for.
    """

    __slots__ = ("out_of_memory", "pieces", "refused_for")

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.refused_for: int | None = None
        self.out_of_memory = False


class Room:
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
        self._margin = closeness(reserve)

    def is_below(self, tokens: int) -> bool:
        """Whether there is not more room than that."""
        difference = tokens - self._estimate
        if abs(difference) > self._margin:
            return difference > 0
        room = float(self._whole) - self._batch.reserve(self._ratio)
        for promised in self._promised:
            room -= float(promised)
        return tokens >= room

    def promise(self, tokens: int) -> None:
        """Give room away."""
        self._promised.append(tokens)
        self._estimate -= tokens


def closeness(reserve: float) -> float:
    """How far the reserve by whole numbers may be from the float sum in running order, with a wide margin."""
    return 1e-6 + 1e-9 * abs(reserve)


def demand(engine: SglangScheduler, sequence: SglangSequence, chunk_room: float) -> Demand | None:
    """What the next piece of a waiting request asks for; None when there is no such piece."""
    missing = sequence.prompt_tokens + sequence.generated - sequence.have
    if missing <= engine.chunk_tokens:
        tokens = missing
    else:
        tokens = min(int(chunk_room) // engine.page_tokens * engine.page_tokens, missing)
    if not tokens:
        return None
    outputs = 0 if tokens < missing else min(sequence.left, engine.clip_tokens)
    return Demand(tokens, -(-tokens // engine.page_tokens) * engine.page_tokens, outputs)


def admit(engine: SglangScheduler, now_ms: float) -> Admission:
    """Take requests from the head of the queue, never past it, and give them their slots."""
    admission = Admission()
    queue, cache, batch = engine.queue, engine.cache, engine.batch
    pieces = admission.pieces
    seats = engine.max_sequences - len(batch)
    if seats <= 0:
        return admission
    room = Room(batch, cache.available, engine.ratio.value)
    input_room, chunk_room = engine.input_tokens, engine.chunk_tokens
    while queue and len(pieces) < seats:
        head = queue.head
        wanted = demand(engine, head, chunk_room)
        if wanted is None:
            break
        tokens, charge, outputs = wanted
        affordable = charge <= input_room and charge <= chunk_room
        if not affordable or room.is_below(charge + outputs):
            if affordable:
                admission.refused_for = charge + outputs
            break
        if cache.free < tokens:
            cache.evict(tokens - cache.free)
        had = head.have
        reused = memory.extend(cache, head, had + tokens) if had else memory.begin(cache, head, tokens)
        if reused is None:
            admission.out_of_memory = True
            break
        queue.pop()
        page = engine.page_tokens
        end = head.have
        # What waits has whole pages, so nothing of its quota is left over.
        room.promise(-(-end // page) * page - had + outputs)
        input_room -= charge
        chunk_room -= charge
        head.request.note_admission(now_ms, reused)
        pieces.append(Piece(head, tokens, reused, end))
        if chunk_room <= 0:
            break
    return admission
