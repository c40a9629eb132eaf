"""What is said beside a manifest: flags of the controller, and what metrics stand for (`spec 10, 2.1 and 8.4`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from dynamo_sim.autoscaling.kubernetes.manifests.advice import NOTHING_FITS, map_line
from dynamo_sim.autoscaling.kubernetes.promql.names import find_series
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.cron import DEFAULT_START
from dynamo_sim.metric_catalogue import METRICS, Kind, is_pooled
from dynamo_sim.scenario.autoscaler.manifest import HpaFlags
from dynamo_sim.text import shown

RESOURCES = ("cpu", "memory")


@dataclass(frozen=True)
class ManifestOptions:
    """Everything a manifest does not say.

    Attributes:
        hpa: flags of the HPA controller.
        metric_map: a metric's name, a trigger's name or a whole PromQL query, and what is asked of our metrics for it.
        resource_map: what stands for ``cpu`` or ``memory``, such as ``{"cpu": MetricQuery("busy")}``; one whole worker
            is requested of each. None of them is mapped without it.
        start_of_run: the wall clock at virtual time 0, for cron.
        used: what was asked for so far: the map and the name.
    """

    hpa: HpaFlags = field(default_factory=HpaFlags)
    metric_map: Mapping[str, MetricQuery] = field(default_factory=dict)
    resource_map: Mapping[str, MetricQuery] = field(default_factory=dict)
    start_of_run: datetime = DEFAULT_START
    used: set[tuple[str, str]] = field(default_factory=set, compare=False, repr=False)

    def mapped(self, name: str) -> MetricQuery | None:
        """What ``metric_map`` has for a name, if anything; it counts as used then."""
        found = self.metric_map.get(name)
        if found is not None:
            self.used.add(("metric_map", name))
        return found

    def unused(self) -> list[str]:
        """A line for every entry of ``metric_map`` and ``resource_map`` that nobody has asked for."""
        given = [("metric_map", name) for name in self.metric_map]
        given += [("resource_map", name) for name in self.resource_map]
        return [
            f"{key}: {shown(name)} has no effect: no metric that is read has this name"
            for key, name in given
            if (key, name) not in self.used
        ]

    def named(self, name: str, total: bool) -> MetricQuery:
        """The query of a metric that is only named, as in an HPA.

        Args:
            name: as the manifest says.
            total: whether one number is needed (``Object``, ``External``), not a sample a worker.

        Raises:
            ValueError: there is no counterpart.
        """
        mapped = self.mapped(name)
        if mapped is not None:
            return mapped
        if name in METRICS:
            metric, scale, pooled = name, 1.0, ""
        else:
            series = find_series(name)
            if series is None or series.part:
                line = map_line(name, total)
                raise ValueError(
                    f"there is no counterpart of the metric {name!r}; "
                    + (f"say what it stands for beside the manifest: {line}" if line else NOTHING_FITS)
                )
            metric, scale, pooled = series.metric, series.scale, series.pooled
        spec = METRICS[metric]
        if spec.kind is Kind.HISTOGRAM:
            raise ValueError(
                f"{name!r} is a histogram; say which percentile is meant, beside the manifest: "
                f"{map_line(name, total, metric)}"
            )
        if pooled and not total:
            raise ValueError(f"{name!r} is one series for the whole fleet, not one a worker")
        if not spec.per_worker and not total:
            raise ValueError(f"{metric} is one value for the whole fleet, not one a worker")
        reduce = "merge" if pooled and is_pooled(spec) else pooled or "sum"
        return MetricQuery(metric, reduce=reduce if total else None, scale=scale)

    def resource(self, name: str) -> MetricQuery:
        """The query of a resource.

        Raises:
            ValueError: it is not mapped.
        """
        mapped = self.resource_map.get(name)
        self.used.add(("resource_map", name))
        if mapped is None:
            if name not in RESOURCES:
                raise ValueError(
                    f"there is no model of the resource {name!r}; only cpu and memory can be mapped"
                )
            raise ValueError(
                f"there is no model of the resource {name!r}; to let a worker's busy time stand for it, say beside the "
                f"manifest: resource_map: {{{name}: busy}}"
            )
        if not mapped.spec.per_worker:
            raise ValueError(
                f"resource_map: {name} stands for {mapped.metric}, one value for the whole fleet, not one a worker"
            )
        return mapped
