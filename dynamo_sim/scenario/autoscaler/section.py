"""The `autoscaler` section: who scales the fleet, when, and from which numbers (spec 10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, model_serializer, model_validator
from pydantic_core.core_schema import SerializerFunctionWrapHandler

from dynamo_sim.scenario.autoscaler.manifest import (
    FromManifest,
    ManifestKeys,
    ManifestScaling,
    ManifestSource,
)
from dynamo_sim.scenario.autoscaler.metrics import MetricsSection
from dynamo_sim.scenario.autoscaler.policy import ScalingPolicy
from dynamo_sim.scenario.base import Count, NonNegative, Path, PositiveCount, Problems

OWN_TIMES = {"keda": "polling_interval_s and sync_period_s", "sla": "interval_s", "hpa": "sync_period_s"}
"""Where policies say how often they are evaluated; for `kpa` and `dynamo_planner` that is fixed."""


class FleetAutoscaler(ManifestKeys):
    """Who scales one fleet: a policy, or a manifest with the options beside it."""

    policy: ScalingPolicy | None = None
    """The policy."""

    manifest: ManifestSource = None
    """Instead of a policy: a manifest, as a path, a text or its documents."""

    name: str | None = None
    """Which autoscaler of the manifest, where there are several."""

    period_s: Annotated[float, Field(ge=0.01)] | None = None
    """Time between two evaluations; null = 15, or what the policy says itself."""

    first_at_s: NonNegative | None = None
    """Time of the first evaluation; null = one period."""

    min_workers: Count = 0
    """Smallest fleet, whatever the policy wants."""

    max_workers: PositiveCount | None = None
    """Largest fleet, whatever the policy wants."""

    max_gpus: PositiveCount | None = None
    """Most GPUs of the fleet; clamps last."""

    metrics: MetricsSection = MetricsSection()
    """What the policy can see of the fleet, and how late."""

    @model_validator(mode="after")
    def _check_autoscaler(self) -> FleetAutoscaler:
        found = list(self._conflicts())
        if found:
            raise Problems(found)
        return self

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if self.policy is None and self.manifest is None:
            yield ("policy",), "missing; an autoscaler needs a policy or a manifest"
        if self.policy is not None:
            if self.manifest is not None:
                yield ("manifest",), "cannot be given together with policy"
            for key in (*ManifestKeys.model_fields, "name"):
                default = type(self).model_fields[key].get_default(call_default_factory=True)
                if getattr(self, key) != default:
                    inside = isinstance(self.policy, FromManifest)
                    yield (key,), "belongs in the policy" if inside else "is possible only with a manifest"
        if self.max_workers is not None and self.max_workers < self.min_workers:
            yield (
                ("max_workers",),
                f"found {self.max_workers}; must be at least min_workers, {self.min_workers}",
            )
        yield from self._time_conflicts()

    def _time_conflicts(self) -> Iterator[tuple[Path, str]]:
        kind = self.kind
        if self.period_s is not None and kind in ("hpa", "keda", "kpa", "sla", "dynamo_planner", "manifest"):
            where = f"; use its {OWN_TIMES[kind]}" if kind in OWN_TIMES else ""
            yield ("period_s",), f"is not possible here: {_called(kind)} has times of its own{where}"
        if self.first_at_s is not None and kind in ("dynamo_planner", "schedule"):
            yield ("first_at_s",), f"is not possible here: {_called(kind)} has times of its own"

    @property
    def kind(self) -> str:
        """Kind of the policy; `manifest` where only that is given."""
        return "manifest" if self.policy is None else self.policy.kind

    @property
    def chosen(self) -> ScalingPolicy:
        """The policy, whichever way it was given."""
        if self.policy is not None:
            return self.policy
        options = {key: getattr(self, key) for key in ManifestKeys.model_fields}
        return ManifestScaling.model_construct(
            kind="manifest", manifest=self.manifest, name=self.name, **options
        )


class Autoscaler(FleetAutoscaler):
    """Who scales the fleet; where prefill and decode are separate fleets, who scales each of them."""

    prefill: FleetAutoscaler | None = None
    """Who scales the prefill fleet."""

    decode: FleetAutoscaler | None = None
    """Who scales the decode fleet."""

    @property
    def is_per_fleet(self) -> bool:
        """Whether it says who scales each of two fleets."""
        return self.prefill is not None or self.decode is not None

    def of_fleets(self) -> dict[str, FleetAutoscaler]:
        """Who scales which fleet, by its name; a fleet that nobody scales is left out."""
        if not self.is_per_fleet:
            return {"fleet": self}
        both = {"prefill": self.prefill, "decode": self.decode}
        return {name: section for name, section in both.items() if section is not None}

    @model_serializer(mode="wrap")
    def _only_what_it_says(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The keys of one fleet or those of two: the defaults of the others must not be read as given."""
        data: dict[str, Any] = handler(self)
        return {
            key: value for key, value in data.items() if (key in ("prefill", "decode")) == self.is_per_fleet
        }

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if not self.is_per_fleet:
            yield from super()._conflicts()
            return
        for key in FleetAutoscaler.model_fields:
            if key in self.model_fields_set:
                yield (key,), "cannot be given beside prefill and decode; give it in one of them"


def _called(kind: str) -> str:
    return "a manifest" if kind == "manifest" else f"the policy {kind!r}"
