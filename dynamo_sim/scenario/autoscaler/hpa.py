"""HorizontalPodAutoscaler, by keys (spec 10, 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, model_validator

from dynamo_sim.scenario.autoscaler.behavior import BehaviorSpec
from dynamo_sim.scenario.autoscaler.manifest import FromManifest
from dynamo_sim.scenario.autoscaler.parts import MetricSpec, Positive
from dynamo_sim.scenario.base import Count, Path, PositiveCount, Problems

MAX_ENTRIES = 100
"""Metrics or triggers of one policy."""


class HpaMetricSpec(MetricSpec):
    """A metric of an HPA and its target."""

    source: Literal["Pods", "Object", "External"] = "Pods"
    """A sample a worker (Pods), or one number (Object, External; the sum where `reduce` is left out)."""

    target_type: Literal["AverageValue", "Value"] = "AverageValue"
    """Whether the target is for one worker or for the whole fleet."""

    target: Positive
    """The target."""

    name: str = ""
    """How records call it."""

    @model_validator(mode="after")
    def _check_target(self) -> HpaMetricSpec:
        if self.source == "Pods" and self.target_type == "Value":
            raise Problems([(("target_type",), "found 'Value'; must be 'AverageValue' for source 'Pods'")])
        return self


class HpaScaling(FromManifest):
    """HorizontalPodAutoscaler autoscaling/v2, by a manifest or by keys."""

    kind: Literal["hpa"] = "hpa"
    """Kind of policy."""

    min_replicas: Count = 1
    """Smallest fleet it asks for."""

    max_replicas: PositiveCount | None = None
    """Largest; needed without a manifest."""

    metrics: tuple[HpaMetricSpec, ...] = Field(default=(), strict=False, max_length=MAX_ENTRIES)
    """Its metrics; at least one without a manifest."""

    behavior: BehaviorSpec | None = None
    """How fast it scales; null = none, whose rules differ from an empty one."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        yield from super()._conflicts()
        if self.manifest is not None:
            return
        if self.max_replicas is None:
            yield ("max_replicas",), "missing; an hpa needs it, or a manifest"
        elif self.max_replicas < self.min_replicas:
            yield (
                ("max_replicas",),
                f"found {self.max_replicas}; must be at least min_replicas, {self.min_replicas}",
            )
        if not self.metrics:
            yield ("metrics",), "missing; an hpa needs at least one, or a manifest"
        if self.min_replicas == 0:
            if not self.scale_to_zero:
                yield ("min_replicas",), "found 0; needs scale_to_zero: true"
            elif all(metric.source == "Pods" for metric in self.metrics):
                yield ("min_replicas",), "found 0; needs a metric of source Object or External"
