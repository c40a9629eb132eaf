"""How metrics travel to a controller (spec 10, 8)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from dynamo_sim.scenario.autoscaler.parts import HistogramName, Positive
from dynamo_sim.scenario.base import NonNegative, Problems, Spec

Bounds = Annotated[tuple[float, ...], Field(strict=False, json_schema_extra={"minItems": 1})]


class MetricsSection(Spec):
    """How metrics travel from the workers to a controller."""

    scrape_interval_s: Annotated[float, Field(ge=0.01)] = 15.0
    """Time between two scrapes of a worker."""

    scrape_aligned: bool = False
    """Whether all workers are scraped together; else each at an offset of its own."""

    scrape_delay_s: NonNegative = 0.0
    """From a scrape until it is visible."""

    window_s: Positive = 60.0
    """Window of what does not say its own."""

    query_interval_s: NonNegative = 0.0
    """How long an answer is given again before it is computed anew, as a metrics adapter does."""

    lookback_s: Positive = 300.0
    """How old a sample may be; without staleness markers also how long a worker that is gone still counts."""

    scrape_while_loading: bool = False
    """Whether a worker is scraped before it is ready."""

    staleness_markers: bool = True
    """Whether the series of a worker that is gone ends at the next scrape, as where Prometheus scrapes pods itself."""

    perfect: bool = False
    """Exact values at every evaluation, nothing of the above."""

    buckets: dict[HistogramName, Bounds] = Field(default_factory=dict)
    """Upper bounds in ms of the buckets of a latency; without them its percentiles are exact."""

    @model_validator(mode="after")
    def _check_buckets(self) -> MetricsSection:
        found = [
            (("buckets", name), "must be numbers that rise" if bounds else "must have at least 1 item")
            for name, bounds in self.buckets.items()
            if not bounds or list(bounds) != sorted(set(bounds))
        ]
        if found:
            raise Problems(found)
        return self
