"""Load that a router has booked on its workers (`spec 06, 3.2`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynamo_sim.routing.kv.overlap_index import Depths, Ints, OverlapIndex
from dynamo_sim.workload.request import Request

FIRST_SIZE = 16
"""Workers that the vectors hold at first."""


class _Booking(NamedTuple):
    """What is booked for a request until it ends.

    Attributes:
        blocks: blocks that it shares with others.
        private_blocks: number of blocks that it shares with nobody.
    """

    worker_id: int
    blocks: Sequence[int]
    private_blocks: int


class ActiveLoad:
    """Booked prefill tokens and active prompt blocks of unfinished requests, for each worker.

    Attributes:
        prefill_tokens: booked tokens by worker id (`A` of `spec 06, 3`).
        active_blocks: distinct prompt blocks of the unfinished requests, by worker id (`D`).
    """

    def __init__(self) -> None:
        self.prefill_tokens: Ints = np.zeros(FIRST_SIZE, dtype=np.int64)
        self.active_blocks: Ints = np.zeros(FIRST_SIZE, dtype=np.int64)
        self._users: dict[int, dict[int, int]] = {}
        self._holders = OverlapIndex()
        self._tokens: dict[Request, tuple[int, int]] = {}
        self._bookings: dict[Request, _Booking] = {}

    def add_worker(self, worker_id: int) -> None:
        """Count a worker from now on, without load."""
        size = len(self.prefill_tokens)
        if worker_id >= size:
            more = np.zeros(max(size, worker_id + 1 - size), dtype=np.int64)
            self.prefill_tokens = np.concatenate([self.prefill_tokens, more])
            self.active_blocks = np.concatenate([self.active_blocks, more])
        self._users[worker_id] = {}
        self._holders.add_worker(worker_id)

    def forget_worker(self, worker_id: int) -> None:
        """Count a worker no longer, with all that is booked on it."""
        if self._users.pop(worker_id, None) is not None:
            self._holders.forget_worker(worker_id)

    def shared_depths(self, blocks: Sequence[int]) -> Depths:
        """Leading blocks of a prompt that are active on each worker (`S`)."""
        return self._holders.depths(blocks)

    def book(
        self,
        request: Request,
        worker_id: int,
        tokens: int,
        blocks: Sequence[int] = (),
        private_blocks: int = 0,
    ) -> None:
        """Book a request on a worker.

        Args:
            tokens: prefill tokens that the worker has to compute; 0 books none.
            blocks: full blocks of the prompt that other requests may share.
            private_blocks: number of full blocks that nobody shares, instead of these.
        """
        if tokens > 0:
            self._tokens[request] = (worker_id, tokens)
            self.prefill_tokens[worker_id] += tokens
        if private_blocks:
            self.active_blocks[worker_id] += private_blocks
        elif blocks:
            users = self._users[worker_id]
            before = len(users)
            for shared, block in enumerate(blocks):
                if block not in users:
                    # Who uses a block uses all before it: nobody uses the blocks behind this one.
                    unused = blocks[shared:]
                    users.update(dict.fromkeys(unused, 1))
                    self._holders.store(worker_id, unused)
                    self.active_blocks[worker_id] += len(users) - before
                    break
                users[block] += 1
        else:
            return
        self._bookings[request] = _Booking(worker_id, blocks, private_blocks)

    def prefill_completed(self, request: Request) -> None:
        """Take back the booked tokens of a request, all at once."""
        booked = self._tokens.pop(request, None)
        if booked is not None and booked[0] in self._users:
            self.prefill_tokens[booked[0]] -= booked[1]

    def freed(self, request: Request) -> None:
        """Take back all that is booked for a request."""
        self.prefill_completed(request)
        booking = self._bookings.pop(request, None)
        if booking is None or booking.worker_id not in self._users:
            return
        worker_id, blocks, private_blocks = booking
        if private_blocks:
            self.active_blocks[worker_id] -= private_blocks
            return
        users = self._users[worker_id]
        for shared, block in enumerate(blocks):
            count = users[block]
            if count == 1:  # and the request was the only user of the blocks behind it, too
                unused = blocks[shared:]
                for unused_block in unused:
                    del users[unused_block]
                self._holders.remove(worker_id, unused)
                self.active_blocks[worker_id] -= len(unused)
                return
            users[block] = count - 1
