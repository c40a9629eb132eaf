"""How a router learns of the state of workers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dynamo_sim.scenario.base import Spec

LoadMeasure = Literal["in_flight", "waiting", "waiting_tokens", "kv_usage"]
"""By what workers are compared: requests in flight, requests or tokens in the queue of the engine, KV usage."""


class RoutingMetrics(Spec):
    """How the router scrapes the workers."""

    interval_ms: Annotated[float, Field(ge=1, le=3_600_000)]
    """Time between two scrapes; the router sees what the last one read. At least 1."""


class ScrapingSpec(Spec):
    """A mode whose router sees the workers as they are, or as they were scraped."""

    metrics: RoutingMetrics | None = None
    """Scraped metrics instead of the exact state; requests in flight the router always knows itself."""

    @property
    def scrape_interval_ms(self) -> float | None:
        """Time between two scrapes; None for exact state."""
        return None if self.metrics is None else self.metrics.interval_ms
