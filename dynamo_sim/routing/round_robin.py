"""Round robin over the active workers (`spec 01, 8`)."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_sim.errors import SimulationError


class RoundRobin:
    """Takes the active workers in turn.

    The cursor counts positions in the list of active workers, not ids, and is not wrapped when it is stored: after a
    full turn over n workers it is n, so a worker that has become active in the meantime is next.
    """

    def __init__(self) -> None:
        self.cursor = 0

    def pick(self, active_ids: Sequence[int]) -> int:
        """The worker for the next request.

        Raises:
            SimulationError: no worker is active.
        """
        if not active_ids:
            raise SimulationError(
                "a request arrived while no worker was active; round robin has nowhere to send it "
                "(keep at least one worker, or scale up before the request arrives)"
            )
        place = self.cursor % len(active_ids)
        self.cursor = place + 1
        return active_ids[place]
