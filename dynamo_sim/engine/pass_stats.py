"""Forward-pass metrics (`spec 02, 11`; `spec 05, 14`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from dynamo_sim.engine.lengths import Lengths
from dynamo_sim.engine.variance import variance_of_sums


class PassStats:
    """What a pass did, and what waits behind it; of a stretch: of its first pass.

    A scheduler writes down counts, sums and sums of squares; what follows from those is computed when it is read.
    Values that are not set are 0. Within a stretch only two things move: every pass adds ``decode_kv_growth`` to
    ``sum_decode_kv_tokens``, and `used_kv_tokens` holds one value a pass.

    Attributes:
        num_prefill_requests: requests with prompt tokens to compute.
        prefill_prompt_tokens, prefill_squares: sum of their prompt lengths, and of those squared.
        sum_prefill_tokens, sum_prefill_kv_tokens: tokens computed for them, and tokens they had before.
        num_decode_requests: all other requests.
        sum_decode_kv_tokens, decode_squares: sum of their lengths, and of those squared.
        num_queued_prefill: requests that wait and never ran.
        sum_queued_prefill_tokens, queued_prefill_squares: sum of their prompt lengths, and of those squared.
        num_queued_decode: requests that wait for their return.
        sum_queued_decode_kv_tokens, queued_decode_squares: sum of their lengths, and of those squared.
        decode_kv_growth: tokens that each pass of a stretch adds to the requests.
        first_used_tokens: KV tokens held in the first pass.
        opened_blocks: blocks opened in each pass of a stretch; they are held from the next one on.
        block_tokens: tokens per block of ``opened_blocks``.
    """

    # The defaults are class attributes, because most passes set a few: a whole pass takes microseconds.
    num_prefill_requests = 0
    sum_prefill_tokens = 0
    sum_prefill_kv_tokens = 0
    prefill_prompt_tokens = 0
    prefill_squares = 0
    num_decode_requests = 0
    sum_decode_kv_tokens = 0
    decode_squares = 0
    num_queued_prefill = 0
    sum_queued_prefill_tokens = 0
    queued_prefill_squares = 0
    num_queued_decode = 0
    sum_queued_decode_kv_tokens = 0
    queued_decode_squares = 0
    decode_kv_growth = 0
    first_used_tokens = 0
    opened_blocks: Sequence[int] = ()
    block_tokens = 1

    @property
    def var_prefill_length(self) -> float:
        """Population variance of the prompt lengths of requests with prompt tokens to compute."""
        return variance_of_sums(self.num_prefill_requests, self.prefill_prompt_tokens, self.prefill_squares)

    @property
    def var_decode_kv_tokens(self) -> float:
        """Population variance of the lengths of the other requests."""
        return variance_of_sums(self.num_decode_requests, self.sum_decode_kv_tokens, self.decode_squares)

    @property
    def var_queued_prefill_length(self) -> float:
        """Population variance of the prompt lengths of requests that wait and never ran."""
        return variance_of_sums(
            self.num_queued_prefill, self.sum_queued_prefill_tokens, self.queued_prefill_squares
        )

    @property
    def var_queued_decode_kv_tokens(self) -> float:
        """Population variance of the lengths of requests that wait for their return."""
        return variance_of_sums(
            self.num_queued_decode, self.sum_queued_decode_kv_tokens, self.queued_decode_squares
        )

    @property
    def used_kv_tokens(self) -> list[int]:
        """KV tokens held in each pass; at least as many values as passes that were not cut off."""
        size = self.block_tokens
        levels = accumulate((size * n for n in self.opened_blocks), initial=self.first_used_tokens)
        return [max(0, level) for level in levels]  # SGLang can hold less than nothing: `spec 05, 12`

    def add_queue(self, arrivals: Lengths, returned: Lengths) -> None:
        """Note what waits after the pass: requests that never ran, and those that wait for their return."""
        if arrivals.count:
            self.num_queued_prefill = arrivals.count
            self.sum_queued_prefill_tokens = arrivals.total
            self.queued_prefill_squares = arrivals.squares
        if returned.count:
            self.num_queued_decode = returned.count
            self.sum_queued_decode_kv_tokens = returned.total
            self.queued_decode_squares = returned.squares
