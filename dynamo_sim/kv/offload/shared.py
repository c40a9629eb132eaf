"""The tiers that all workers of a run share: a disk (G3) and an object store (G4) (`spec 11, 5.3 and 6`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from dynamo_sim.kv.offload.copy_queue import CopyQueue
from dynamo_sim.kv.offload.eviction_order import Block
from dynamo_sim.kv.offload.link import Link
from dynamo_sim.kv.offload.settings import LinkName, OffloadSettings
from dynamo_sim.kv.offload.tier import Tier


class Owner:
    """A worker as the shared links know it.

    Attributes:
        found: transfers of this worker that somebody has found landed, and that it has not settled.
        found_ms: when the first of them was found; infinity for none.
        in_progress: transfers that are not settled.
        is_gone: whether it was killed: nobody will settle anything.
    """

    __slots__ = ("found", "found_ms", "in_progress", "is_gone")

    def __init__(self) -> None:
        self.found: list[SharedTransfer] = []
        self.found_ms = math.inf
        self.in_progress = 0
        self.is_gone = False

    def take_found(self) -> list[SharedTransfer]:
        """What is to be settled now, in order of landing."""
        found, self.found = self.found, []
        self.in_progress -= len(found)
        self.found_ms = math.inf
        return found


class SharedTransfer:
    """A transfer on a shared link, which whoever polls first finds landed.

    Args:
        owner: the worker it belongs to.
        note: does what all workers see of the landing.
        settle: does the rest, in the books of the owner, at its next poll.
    """

    __slots__ = ("_note", "_owner", "settle")

    def __init__(self, owner: Owner, note: Callable[[], None], settle: Callable[[], None]) -> None:
        owner.in_progress += 1
        self._owner = owner
        self._note = note
        self.settle = settle

    def found(self, now_ms: float) -> None:
        """It has landed."""
        self._note()
        if self._owner.is_gone:
            self.settle()
        else:
            self._owner.found.append(self)
            self._owner.found_ms = min(now_ms, self._owner.found_ms)


class WorkerLinks(Protocol):
    """The part of one worker, as far as it is counted in the end."""

    dropped_blocks: int

    @property
    def links(self) -> Mapping[LinkName, Link[Any]]: ...


class SharedTiers:
    """G3 and G4, with one link each way.

    Attributes:
        disk: G3; None where there is none.
        objects: names of the blocks in G4, which never forgets; None where there is no G4.
        links: the shared links by name, in the order in which they are polled.
        workers: every worker that has ever had a part in them.
        disk_queues, object_queues: what each worker is to copy there.
    """

    def __init__(self, settings: OffloadSettings) -> None:
        self.disk = None if settings.disk_blocks is None else Tier(settings.disk_blocks)
        self.objects: set[int] | None = set() if settings.object_store else None
        names: list[LinkName] = []
        if self.disk is not None:
            names += ["g2_to_g3", "g3_to_g2"]
        if self.objects is not None:
            names += ["g2_to_g4", "g4_to_g2"]
        self.links: dict[LinkName, Link[SharedTransfer]] = {name: Link(settings.gbps[name]) for name in names}
        self.workers: list[WorkerLinks] = []
        self.disk_queues: list[CopyQueue[list[Block]]] = []
        self.object_queues: list[CopyQueue[list[Block]]] = []

    def poll(self, now_ms: float) -> None:
        """Find what has landed by now."""
        for link in self.links.values():
            if link.active:
                for transfer in link.advance(now_ms):
                    transfer.found(now_ms)

    @property
    def deadline_ms(self) -> float:
        """When something lands next; infinity for never."""
        links = self.links
        return min([link.deadline_ms for link in links.values()]) if links else math.inf

    def all_links(self) -> Iterator[tuple[LinkName, Link[Any]]]:
        """The links of all workers, and the shared ones, with their names."""
        for worker in self.workers:
            yield from worker.links.items()
        yield from self.links.items()

    def goes_to_disk(self, name: int) -> bool:
        """Whether a block that has come to a host tier is copied to G3 (`spec 11, 6`)."""
        disk = self.disk
        return (
            disk is not None
            and name not in disk
            and not _waits(name, (batch for queue in self.disk_queues for batch in queue.behind_next()))
            and disk.has_room_for(1)
        )

    def goes_to_store(self, name: int) -> bool:
        """Whether a block that has come to a host tier is copied to G4."""
        return (
            self.objects is not None
            and name not in self.objects
            and not _waits(name, (batch for queue in self.object_queues for batch in queue.waiting))
        )


def _waits(name: int, batches: Iterable[list[Block]]) -> bool:
    return any(block.name == name for batch in batches for block in batch)
