"""Which loop sees the fleet through which pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dynamo_sim.autoscaling.loop import Loop, reads_of
from dynamo_sim.autoscaling.metrics import MetricsPipeline, MetricsSettings, Sampler
from dynamo_sim.autoscaling.query import MetricQuery
from dynamo_sim.autoscaling.view import View


def pipelines_for(
    loops: Sequence[Loop],
    sampler: Sampler,
    settings: MetricsSettings,
    offset: Callable[[int], float] | None = None,
) -> tuple[list[MetricsPipeline], list[Callable[[float], View]]]:
    """Pipelines that collect what the loops read, and the view of each loop.

    All loops share one scraped pipeline, but those whose policy is ``direct``: each of them gets an exact one of its
    own. A pipeline that would collect nothing is left out of the first list.

    Args:
        loops: of one autoscaler.
        sampler: the truth.
        settings: how metrics travel.
        offset: see `MetricsPipeline`.
    """
    scraped = [loop for loop in loops if not getattr(loop.policy, "direct", False)]
    shared = MetricsPipeline(sampler, _union(scraped), settings, offset)
    exact = replace(settings, perfect=True)
    pipelines = [shared]
    views: list[Callable[[float], View]] = []
    for loop in loops:
        if loop in scraped:
            views.append(shared.view)
        else:
            own = MetricsPipeline(sampler, reads_of(loop.policy), exact)
            pipelines.append(own)
            views.append(own.view)
    return [pipeline for pipeline in pipelines if pipeline.collects], views


def _union(loops: Sequence[Loop]) -> list[MetricQuery] | None:
    found: list[MetricQuery] = []
    for loop in loops:
        reads = reads_of(loop.policy)
        if reads is None:
            return None
        found.extend(reads)
    return list(dict.fromkeys(found))
