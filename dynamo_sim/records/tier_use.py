"""What the cache tiers below the GPUs did in a run (`spec 11`)."""

from __future__ import annotations

from dataclasses import dataclass

from dynamo_sim.kv.offload.settings import LinkName
from dynamo_sim.kv.offload.shared import SharedTiers


@dataclass(frozen=True, slots=True)
class LinkUse:
    """What a link carried; where each worker has one of its own, all of them together.

    Attributes:
        transfers: how many.
        moved_bytes: their sizes.
        busy_ms: how long there was any on it.
    """

    transfers: int = 0
    moved_bytes: int = 0
    busy_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class TierUse:
    """The links and the host tiers of all workers, also of those that are gone.

    Attributes:
        links: by name, in the order G1 to G2, back, and so on; those there are.
        dropped_blocks: blocks the GPUs evicted that were not copied, because a host tier had no room.
    """

    links: dict[LinkName, LinkUse]
    dropped_blocks: int

    @classmethod
    def of(cls, tiers: SharedTiers, end_ms: float) -> TierUse:
        """Read it off the tiers of a run that has ended at ``end_ms``."""
        links: dict[LinkName, LinkUse] = {}
        for name, link in tiers.all_links():
            known = links.get(name, LinkUse())
            links[name] = LinkUse(
                known.transfers + link.transfers,
                known.moved_bytes + link.moved_bytes,
                known.busy_ms + link.busy_ms(end_ms),
            )
        return cls(links, sum(worker.dropped_blocks for worker in tiers.workers))
