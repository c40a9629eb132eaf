"""The decode step of an SGLang-style worker with speculative decoding (`spec 05, 9`; `spec 04, 6.3`)."""

from __future__ import annotations

from dynamo_sim.engine.sglang import memory
from dynamo_sim.engine.sglang.batch import RunningBatch
from dynamo_sim.engine.sglang.decode import Decoding
from dynamo_sim.engine.sglang.handoff import SglangHandoffs
from dynamo_sim.engine.sglang.sequence import SglangSequence
from dynamo_sim.engine.step import COMPLETED, FIRST_TOKEN, Step
from dynamo_sim.engine.token_log import TokenLog
from dynamo_sim.kv.radix_cache import RadixCache
from dynamo_sim.timing.pass_timing import PassTiming
from dynamo_sim.timing.speculative import BurstSampler


class BurstDecoding(Decoding):
    """A burst of accepted tokens for every running request; room is made for the longest possible ones."""

    def __init__(
        self,
        batch: RunningBatch,
        cache: RadixCache,
        timing: PassTiming,
        tokens: TokenLog,
        handoffs: SglangHandoffs,
        pool_tokens: int,
        sampler: BurstSampler,
    ) -> None:
        super().__init__(batch, cache, timing, tokens, handoffs, pool_tokens)
        self._sampler = sampler

    def _needs(self) -> tuple[int, int]:
        longest, page = len(self._sampler.rates) + 1, self._batch.page_tokens
        needed = pages = 0
        for sequence in self._batch.members.values():
            length = sequence.prompt_tokens + sequence.generated
            burst = min(longest, sequence.left)
            needed += burst
            pages += -(-(length + burst) // page) - -(-length // page)
        return needed, pages

    def _leave_lockstep(self, sequence: SglangSequence) -> None:
        """Nothing to do: every token was noted, and every page stored, when it came."""

    def _emit(self, step: Step, newcomers: list[SglangSequence]) -> None:
        """A burst for every member; all tokens carry the end of the pass."""
        sampler, batch, cache = self._sampler, self._batch, self._cache
        page, end_ms = batch.page_tokens, step.ends_ms[0]
        members = list(batch.members.values())
        bursts = [sampler.burst(sequence.left) for sequence in members]
        enders = []
        for sequence, burst in zip(members, bursts, strict=True):
            if not burst:
                continue
            step.tokens += burst
            step.forwards += 1
            cache.take(burst)
            before = sequence.generated
            if not before and sequence.max_output_tokens > 1:
                step.signals.append((sequence.request, FIRST_TOKEN))
            for generated in range(before + 1, before + burst + 1):
                sequence.generated = generated
                self._tokens.token(sequence, end_ms)
                if generated < sequence.max_output_tokens:
                    memory.store(cache, sequence, sequence.tokens // page, cache.now())
            if sequence.generated == sequence.max_output_tokens:
                step.signals.append((sequence.request, COMPLETED))
                batch.remove(sequence)
                sequence.generated = sequence.max_output_tokens
                enders.append(sequence)
            else:
                batch.leap(sequence, burst)
            sequence.is_new = False
        for sequence in enders:
            self._tokens.last_token(sequence, end_ms)
            self._handoffs.ended(sequence, by_page=False)
