"""What a router knows of a worker that it scrapes now and then."""

from __future__ import annotations

from dynamo_sim.routing.worker_view import WorkerView


class ScrapedView(WorkerView):
    """A worker as it was when it was scraped; how many requests it has in flight, the router knows itself.

    A worker that was not scraped yet shows what a new one has: nothing.

    Args:
        live: the worker as it is now.
        is_new: whether it was not scraped yet.
    """

    __slots__ = ("_kv_tokens", "_running", "_waiting", "_waiting_tokens")

    def __init__(self, live: WorkerView, is_new: bool = False) -> None:
        super().__init__(live._worker, live._now_ms)
        if is_new:
            self._running = self._waiting = self._waiting_tokens = self._kv_tokens = 0
        else:
            self._running = live.running
            self._waiting = live.waiting
            self._waiting_tokens = live.waiting_tokens
            self._kv_tokens = live.kv_tokens

    @property
    def running(self) -> int:
        """Requests in its batch at the scrape."""
        return self._running

    @property
    def waiting(self) -> int:
        """Requests that its engine had not admitted, or had preempted."""
        return self._waiting

    @property
    def waiting_tokens(self) -> int:
        """Tokens of the requests that waited."""
        return self._waiting_tokens

    @property
    def kv_tokens(self) -> int:
        """Tokens of its KV cache that requests held."""
        return self._kv_tokens
