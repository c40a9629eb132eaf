"""Which loop sees the fleet through which pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dynamo_sim.autoscaling.fleet_view import View
from dynamo_sim.autoscaling.metrics.pipeline import MetricsPipeline
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.metrics.sampler import Sampler
from dynamo_sim.autoscaling.policy import Loop
from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.autoscaler.metrics import MetricsSection


def pipelines_for(
    loops: Sequence[Loop],
    sampler: Sampler,
    settings: MetricsSection,
    offset: Callable[[int], float] | None = None,
) -> tuple[list[MetricsPipeline], list[Callable[[float], View]]]:
    """Pipelines that collect what the loops read, and the view of each loop.

    All loops share one scraped pipeline, but those whose policy is ``direct``: each of them gets an exact one of its
    own. A pipeline that would collect nothing is left out of the first list. The observations of a histogram are handed
    out once, so only one pipeline may read them.

    Args:
        loops: of one autoscaler.
        sampler: exact metrics.
        settings: how metrics travel.
        offset: see `MetricsPipeline`.

    Raises:
        ScenarioError: two pipelines read the same histogram.
    """
    scraped = [loop for loop in loops if not loop.policy.direct]
    shared = MetricsPipeline(sampler, _union(scraped), settings, offset)
    exact = settings.model_copy(update={"perfect": True})
    pipelines = [shared]
    views: list[Callable[[float], View]] = []
    for loop in loops:
        if loop in scraped:
            views.append(shared.view)
        else:
            own = MetricsPipeline(sampler, loop.policy.queries, exact)
            pipelines.append(own)
            views.append(own.view)
    taken: set[str] = set()
    for pipeline in pipelines:
        twice = taken.intersection(pipeline.histograms)
        if twice:
            raise ScenarioError(
                f"{', '.join(sorted(twice))}: read by more than one loop of which one at least is direct; let one loop "
                "read them, and let the others say by `reads` what they need"
            )
        taken.update(pipeline.histograms)
    return [pipeline for pipeline in pipelines if pipeline.collects], views


def _union(loops: Sequence[Loop]) -> list[MetricQuery] | None:
    found: list[MetricQuery] = []
    for loop in loops:
        reads = loop.policy.queries
        if reads is None:
            return None
        found.extend(reads)
    return list(dict.fromkeys(found))
