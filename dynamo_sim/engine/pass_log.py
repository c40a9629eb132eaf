"""Forward passes of a worker as they are recorded: packed numbers, which become columns when somebody reads them."""

from __future__ import annotations

from array import array
from struct import Struct

import numpy as np

PassNumbers = tuple[int, int, int, int, int, int, int, int]
"""What is noted of a pass, in the order of `NUMBERS`. A plain tuple: one is made for nearly every step of a run."""

NUMBERS = {
    "output_tokens": "i",
    "prefill_requests": "i",
    "prefill_tokens": "q",
    "prefill_kv_tokens": "q",
    "decode_requests": "i",
    "decode_kv_tokens": "q",
    "queued_requests": "i",
    "used_blocks": "q",
}
"""Tokens emitted; requests with prompt tokens to compute, tokens computed for them, prompt tokens they had before; all
other requests, and the sum of their lengths; requests that wait after the pass; blocks held during it (SGLang: slots,
perhaps less than none: `spec 05, 12`). Of a stretch they are those of its first pass. Each later one has
``output_tokens`` more ``decode_kv_tokens``, and holds the blocks that were opened before it. The letters are types of 4
and 8 bytes: getting memory takes longer than writing the numbers."""

_ROW = {"start_ms": "d", "passes": "i", **NUMBERS}

ROW = np.dtype([(name, "<" + code) for name, code in _ROW.items()])
"""What is stored of a pass or a stretch."""

_pack = Struct("<" + "".join(_ROW.values())).pack


class PassLog:
    """Forward passes of one worker, in order.

    Recording a step is next to no work, and a stretch takes little memory however many passes it has.

    Args:
        worker_id: the worker.
        block_tokens: tokens per block of what is held and opened.

    Attributes:
        rows: a `ROW` for each pass or stretch, packed.
        ends_ms: the end of every pass.
        opened_blocks: how many blocks every pass of a stretch opens, which are held from the next pass on.
    """

    __slots__ = ("block_tokens", "ends_ms", "opened_blocks", "rows", "worker_id")

    def __init__(self, worker_id: int, block_tokens: int) -> None:
        self.worker_id = worker_id
        self.block_tokens = block_tokens
        self.rows = bytearray()
        self.ends_ms = array("d")
        self.opened_blocks = array("i")

    def add_pass(self, start_ms: float, end_ms: float, numbers: PassNumbers) -> None:
        """Record a pass that is not part of a stretch."""
        self.rows += _pack(start_ms, 1, *numbers)
        self.ends_ms.append(end_ms)
        self.opened_blocks.append(0)

    def add_stretch(
        self, start_ms: float, ends_ms: list[float], numbers: PassNumbers, opened_blocks: list[int]
    ) -> None:
        """Record a stretch, given the end of each of its passes and how many blocks each opens."""
        self.rows += _pack(start_ms, len(ends_ms), *numbers)
        self.ends_ms.fromlist(ends_ms)
        self.opened_blocks.fromlist(opened_blocks)
