"""Blocks on their way from the GPU to the host (`spec 11, 3`)."""

from __future__ import annotations

from dynamo_sim.kv.offload.eviction_order import Block


class Lease:
    """Blocks that were evicted together. Their slots are in quarantine until their copies have landed.

    Attributes:
        dropped: victims that are not copied; their slots come free with the last copy.
        left: batches that have not landed.
    """

    __slots__ = ("dropped", "left")

    def __init__(self, dropped: int, batches: int) -> None:
        self.dropped = dropped
        self.left = batches

    @property
    def is_over(self) -> bool:
        """Whether all slots have been given back."""
        return not self.left


class Batch:
    """Blocks of a lease that are copied in one transfer."""

    __slots__ = ("blocks", "lease")

    def __init__(self, lease: Lease, blocks: list[Block]) -> None:
        self.lease = lease
        self.blocks = blocks
