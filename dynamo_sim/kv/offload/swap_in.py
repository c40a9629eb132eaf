"""A prompt whose blocks come back to the GPU before it is admitted (`spec 11, 5`)."""

from __future__ import annotations

from typing import Generic, TypeVar

from dynamo_sim.kv.block_table import BlockTable
from dynamo_sim.kv.offload.eviction_order import Block
from dynamo_sim.kv.offload.settings import LinkName

R = TypeVar("R")


class SwapIn(Generic[R]):
    """Blocks on their way to slots of the GPU, for a request that is parked.

    Attributes:
        request: who waits for them.
        table, prefix_blocks: the blocks of the prompt, and how many of them, from the first on, the GPU had: they are
            held meanwhile.
        blocks: those that come, in order: first what the host had, then what it gets from disk, then from the store.
        host_blocks, disk_blocks, store_blocks: how many of each.
        parked_ms: since when.
        held: those of ``blocks`` that are held in the host tier.
        to_stage: transfers to the host tier that have not landed, each with its link and its blocks.
        is_cancelled: whether the request is gone.
        is_stopped: whether the blocks never come. The slots come free without content.
    """

    __slots__ = (
        "blocks",
        "disk_blocks",
        "held",
        "host_blocks",
        "is_cancelled",
        "is_stopped",
        "parked_ms",
        "prefix_blocks",
        "request",
        "store_blocks",
        "table",
        "to_stage",
    )

    def __init__(
        self,
        request: R,
        table: BlockTable,
        prefix_blocks: int,
        blocks: list[Block],
        disk_blocks: int,
        store_blocks: int,
        parked_ms: float,
    ) -> None:
        self.request = request
        self.table = table
        self.prefix_blocks = prefix_blocks
        self.blocks = blocks
        self.host_blocks = len(blocks) - disk_blocks - store_blocks
        self.disk_blocks = disk_blocks
        self.store_blocks = store_blocks
        self.parked_ms = parked_ms
        self.held: list[Block] = blocks[: self.host_blocks]
        self.to_stage: list[tuple[LinkName, list[Block]]] = []
        if store_blocks:
            self.to_stage.append(("g4_to_g2", blocks[self.host_blocks + disk_blocks :]))
        if disk_blocks:
            self.to_stage.append(("g3_to_g2", self.from_disk))
        self.is_cancelled = False
        self.is_stopped = False

    @property
    def staged(self) -> int:
        """Blocks that come to the host tier first."""
        return self.disk_blocks + self.store_blocks

    @property
    def from_disk(self) -> list[Block]:
        """Those that come from the disk."""
        return self.blocks[self.host_blocks : self.host_blocks + self.disk_blocks]
