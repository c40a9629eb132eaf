"""The decode step of an SGLang-style worker (`spec 05, 9 and 10`)."""

from __future__ import annotations

from operator import attrgetter

from dynamo_sim.engine.sglang import memory
from dynamo_sim.engine.sglang.batch import RunningBatch
from dynamo_sim.engine.sglang.handoff import SglangHandoffs
from dynamo_sim.engine.sglang.sequence import SglangSequence
from dynamo_sim.engine.step import COMPLETED, FIRST_TOKEN, Step
from dynamo_sim.engine.token_log import TokenLog
from dynamo_sim.kv.radix_cache import RadixCache
from dynamo_sim.timing.pass_timing import PassTiming

ENTRY = attrgetter("entry")


class Decoding:
    """Gives every running request its next token, after it has made room for all of them.

    Args:
        batch, cache: what runs, and its slots.
        timing: durations of decode steps.
        tokens: where token times are written.
        handoffs: says what becomes of the slots of those that end.
        pool_tokens: slots of the worker.

    Attributes:
        retractions: requests that had to make room so far.
    """

    def __init__(
        self,
        batch: RunningBatch,
        cache: RadixCache,
        timing: PassTiming,
        tokens: TokenLog,
        handoffs: SglangHandoffs,
        pool_tokens: int,
    ) -> None:
        self.retractions = 0
        self._batch = batch
        self._cache = cache
        self._timing = timing
        self._tokens = tokens
        self._handoffs = handoffs
        self._pool_tokens = pool_tokens

    def decode(self, step: Step, newcomers: list[SglangSequence]) -> tuple[list[SglangSequence], int]:
        """One token, or a burst, for every running request; sets the step's end, tokens and signals.

        Args:
            step: ends where the decode step begins; stays so when slots are missing even for a single request.
            newcomers: those that entered the batch in this pass, in order; victims among them are taken out.

        Returns:
            Requests that were retracted to make room, the first one first, and the slots in use before the tokens.
        """
        batch, cache = self._batch, self._cache
        victims, needed = self._make_room(newcomers)
        if needed > cache.free:
            cache.evict(needed - cache.free)
        used_tokens = max(0, self._pool_tokens - cache.available)
        if needed <= cache.free:
            count, length = len(batch.members), batch.tokens
            decode_ms = self._timing.decode_ms(min(length, self._pool_tokens), count, length // count)
            step.ends_ms[0] += decode_ms
            self._emit(step, newcomers)
        return victims, used_tokens

    # ------------------------------------------------------------ room

    def _make_room(self, newcomers: list[SglangSequence]) -> tuple[list[SglangSequence], int]:
        """Retract until the rest can go on: who had to, and how many slots the rest needs."""
        batch, cache = self._batch, self._cache
        victims: list[SglangSequence] = []
        while True:
            needed, opened_pages = self._needs()
            available = cache.available
            if available >= needed:
                unpromised = max(0, available - batch.slack_tokens)
                if unpromised >= opened_pages * batch.page_tokens:
                    break
            if len(batch.members) == 1:
                break
            victims.append(self._retract(newcomers))
        return victims, needed

    def _needs(self) -> tuple[int, int]:
        """Slots the next tokens need at most, and pages they open."""
        return self._batch.group.count, self._batch.group.openings_within(1)

    def _retract(self, newcomers: list[SglangSequence]) -> SglangSequence:
        victim = self._batch.victim()
        self._batch.remove(victim)
        if not victim.is_new:
            self._leave_lockstep(victim)
        elif victim in newcomers:
            newcomers.remove(victim)
        memory.retract(self._cache, victim)
        self.retractions += 1
        victim.request.preemptions += 1
        return victim

    def _leave_lockstep(self, sequence: SglangSequence) -> None:
        """Store the pages a sequence has filled in lockstep, as of the pass in which the last one was filled."""
        self._tokens.leave((sequence,))
        pages, beyond = divmod(sequence.tokens, self._batch.page_tokens)
        stamp = self._cache.stamp_before(self._batch.group.passes - beyond, sequence.entry)
        memory.store(self._cache, sequence, pages, stamp, by_page=True)

    # ------------------------------------------------------------ tokens

    def _emit(self, step: Step, newcomers: list[SglangSequence]) -> None:
        """One token for every member, at the end of the step."""
        group = self._batch.group
        step.tokens = step.forwards = group.count
        earlier = group.count
        for sequence in newcomers:
            if sequence.max_output_tokens:
                earlier -= 1
        if earlier:
            self._tokens.group_pass(step.ends_ms[0], earlier)
        self._cache.take(group.count)
        self._emit_last(step, newcomers)

    def emit_stretch(self, step: Step, ends_ms: list[float]) -> None:
        """A token at each of ``ends_ms``, the ends of the passes of a stretch, for every growing member."""
        batch, cache = self._batch, self._cache
        passes = len(ends_ms)
        needed = passes * batch.group.count
        if needed > cache.free:
            cache.evict(needed - cache.free)
        cache.take(needed)
        self._tokens.group_stretch(ends_ms, batch.group.count)
        if passes > 1:
            batch.advance(passes - 1)
        self._emit_last(step, [])

    def _emit_last(self, step: Step, newcomers: list[SglangSequence]) -> None:
        """The tokens of the last pass of a step, slots for them taken; who has its last one leaves.

        Newcomers, whose prompts others can match from now on, and members page by page store their pages at once;
        those all others have filled are stored when they leave.
        """
        batch, cache = self._batch, self._cache
        batch.advance(1)
        number = cache.round = batch.group.passes
        end_ms = step.ends_ms[-1]
        enders = batch.group.ending.pop(number, [])
        if batch.page_by_page:
            self._store_full_pages(enders)
        starters = []
        for sequence in newcomers:
            output_tokens = sequence.max_output_tokens
            if output_tokens:
                generated = sequence.generated = number - sequence.origin
                self._tokens.token(sequence, end_ms)
                if generated < output_tokens:
                    if generated == 1:
                        starters.append(sequence)
                    sequence.is_new = False
                    self._tokens.join((sequence,))
                    pages = (sequence.prompt_tokens + generated) // batch.page_tokens
                    memory.store(cache, sequence, pages, cache.stamp_before(number, sequence.entry))
        for sequence in enders:
            batch.remove(sequence)
        for sequence in enders:
            self._tokens.last_token(sequence, end_ms)
            self._handoffs.ended(sequence, by_page=not sequence.is_new)
        # In running order; newcomers that want a single token end among those that start.
        signalled = [*enders, *starters]
        if enders and starters and enders[-1].entry > starters[0].entry:
            signalled.sort(key=ENTRY)
        for sequence in signalled:
            ended = sequence.generated == sequence.max_output_tokens
            step.signals.append((sequence.request, COMPLETED if ended else FIRST_TOKEN))

    def _store_full_pages(self, enders: list[SglangSequence]) -> None:
        """Store the pages that members page by page have filled in the present pass; those that end do it then."""
        batch, cache = self._batch, self._cache
        page = batch.page_tokens
        for sequence in batch.page_by_page.values():
            length = batch.group.length(sequence)
            if not sequence.is_new and length % page == 0 and sequence not in enders:
                stamp = cache.stamp_before(batch.group.passes, sequence.entry)
                memory.store(cache, sequence, length // page, stamp)
