"""How much an SGLang-style worker takes on at once (`spec 05, 2`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynamo_sim.scenario.engine_args import EngineArgs

UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes that never change, in tokens but for the first one.

    Attributes:
        max_sequences: most running requests.
        page_tokens: tokens per page.
        pool_tokens: slots of the worker.
        input_tokens: input budget of a pass (``max_prefill_tokens``).
        chunk_tokens: chunk budget of a pass, and the length above which a prompt is split (``chunked_prefill_size``).
        clip_tokens: most output tokens ever reserved for one request (``clip_max_new_tokens``).
    """

    max_sequences: int
    page_tokens: int
    pool_tokens: int
    input_tokens: int
    chunk_tokens: int
    clip_tokens: int

    @classmethod
    def of(cls, args: EngineArgs) -> Limits:
        """The limits that engine arguments set."""
        return cls(
            max_sequences=args.max_num_seqs or UNLIMITED,
            page_tokens=args.block_size,
            pool_tokens=args.num_gpu_blocks * args.block_size,
            input_tokens=args.sglang.max_prefill_tokens,
            chunk_tokens=args.sglang.chunked_prefill_size,
            clip_tokens=args.sglang.clip_max_new_tokens,
        )
