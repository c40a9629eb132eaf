"""What the tiers of a run are (`spec 11, 1`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

LinkName = Literal["g1_to_g2", "g2_to_g1", "g2_to_g3", "g3_to_g2", "g2_to_g4", "g4_to_g2"]
"""From which tier to which: G1 is the GPU, G2 the host, G3 the disk, G4 the object store."""

DEFAULT_GBPS: dict[LinkName, float] = {
    "g1_to_g2": 14.0,
    "g2_to_g1": 14.0,
    "g2_to_g3": 7.0,
    "g3_to_g2": 7.0,
    "g2_to_g4": 4.0,
    "g4_to_g2": 4.0,
}
DEFAULT_BATCH_BLOCKS = 32


@dataclass(frozen=True, slots=True)
class OffloadSettings:
    """The tiers below the GPU.

    Attributes:
        host_blocks: G2 of each worker.
        block_bytes: size of a block.
        disk_blocks: the one G3 of the run; None for none.
        object_store: whether there is a G4, without a limit.
        batch_blocks: most blocks of a transfer, and most transfers of a worker at once from G1 to G2 and G2 to G4.
        gbps: GB a second of each link; 0 for no limit.
    """

    host_blocks: int
    block_bytes: int
    disk_blocks: int | None = None
    object_store: bool = False
    batch_blocks: int = DEFAULT_BATCH_BLOCKS
    gbps: dict[LinkName, float] = field(default_factory=lambda: dict(DEFAULT_GBPS))
