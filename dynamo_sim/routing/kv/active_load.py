"""Load that a router has booked on its workers (`spec 06, 3.2`)."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_sim.routing.kv.overlap_index import OverlapIndex


class ActiveLoad:
    """Booked prefill tokens and active prompt blocks of unfinished requests, for each worker.

    Attributes:
        prefill_tokens: booked tokens by worker id (`A` of `spec 06, 3`).
    """

    def __init__(self) -> None:
        self.prefill_tokens: dict[int, int] = {}
        self._users: dict[int, dict[int, int]] = {}
        self._active = OverlapIndex()
        self._bookings: dict[int, tuple[int, int]] = {}
        self._blocks: dict[int, tuple[int, Sequence[int]]] = {}
        self._private: dict[int, int] = {}

    def add_worker(self, worker_id: int) -> None:
        """Count a worker from now on, without load."""
        self.prefill_tokens[worker_id] = 0
        self._users[worker_id] = {}
        self._private[worker_id] = 0
        self._active.add_worker(worker_id)

    def active_blocks(self, worker_id: int) -> int:
        """Distinct prompt blocks of the unfinished requests of a worker (`D`)."""
        return len(self._users[worker_id]) + self._private[worker_id]

    def shared_depths(self, blocks: Sequence[int]) -> dict[int, int]:
        """Leading blocks of a prompt that are active on each worker (`S`); workers without any are left out."""
        return self._active.depths(blocks)

    def book(
        self, request_id: int, worker_id: int, tokens: int, blocks: Sequence[int], shared: bool = True
    ) -> None:
        """Book a request on a worker.

        Args:
            tokens: prefill tokens that the worker has to compute; 0 books none.
            blocks: full blocks of the prompt; empty where active blocks are not tracked.
            shared: whether requests share equal blocks (`router_assume_kv_reuse`).
        """
        if tokens > 0:
            self._bookings[request_id] = (worker_id, tokens)
            self.prefill_tokens[worker_id] += tokens
        if not shared:
            self._private[worker_id] += len(blocks)
            self._blocks[request_id] = (-1 - worker_id, blocks)
            return
        self._blocks[request_id] = (worker_id, blocks)
        users = self._users[worker_id]
        for block in blocks:
            users[block] = users.get(block, 0) + 1
        self._active.store(worker_id, blocks)

    def prefill_completed(self, request_id: int) -> None:
        """Take back the booked tokens of a request, all at once."""
        booking = self._bookings.pop(request_id, None)
        if booking is not None:
            self.prefill_tokens[booking[0]] -= booking[1]

    def freed(self, request_id: int) -> None:
        """Take back all that is booked for a request."""
        self.prefill_completed(request_id)
        worker_id, blocks = self._blocks.pop(request_id)
        if worker_id < 0:
            self._private[-1 - worker_id] -= len(blocks)
            return
        users = self._users[worker_id]
        unused = []
        for block in blocks:
            users[block] -= 1
            if not users[block]:
                del users[block]
                unused.append(block)
        self._active.remove(worker_id, unused)
