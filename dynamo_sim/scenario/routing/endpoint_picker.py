"""The endpoint picker of the Kubernetes Gateway API Inference Extension, and of llm-d."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from dynamo_sim.scenario.base import CheckedSpec, Path, PositiveCount
from dynamo_sim.scenario.routing.metrics import ScrapingSpec

Weight = Annotated[float, Field(ge=0, le=1_000_000)]
"""Of a score; bounded so that sums of scores keep their digits."""


class ScorerWeights(CheckedSpec):
    """Weights of the scores; those of the default configuration."""

    queue: Weight = 2.0
    """Of the queue score: 1 for the shortest queue, 0 for the longest one."""

    kv_cache_utilization: Weight = 2.0
    """Of the KV cache score: 1 for an empty cache, 0 for a full one."""

    prefix_cache: Weight = 3.0
    """Of the prefix score: share of the prompt's first blocks that is taken to be cached."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if not (self.queue or self.kv_cache_utilization or self.prefix_cache):
            yield (), "all weights are 0; one must be above 0"


class EndpointPickerRouting(ScrapingSpec):
    """Each request goes to the worker with the highest weighted score; equal ones are drawn from."""

    mode: Literal["endpoint_picker"]
    """How workers are chosen."""

    weights: ScorerWeights = ScorerWeights()
    """Weights of the scores."""

    prefix_index: Literal["routed", "kv_events"] = "routed"
    """What is taken to be cached: routed = what was sent there lately; kv_events = what the workers publish."""

    lru_capacity_blocks: PositiveCount = 31_250
    """Blocks that are remembered of each worker with prefix_index: routed."""

    max_prefix_blocks: PositiveCount = 256
    """So many first blocks of a prompt are looked up."""
