"""What is said beside a manifest of a cluster, and the policies that can be read from one (spec 10, 2 to 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo

from dynamo_sim.scenario.autoscaler.parts import AnyMetric, Moment, PolicySpec, Positive
from dynamo_sim.scenario.base import NonNegative, Path, Spec
from dynamo_sim.scenario.files import existing_path


def checked_manifest(value: Any, info: ValidationInfo) -> Any:
    """A path made absolute, or the text or the documents of a manifest as they are.

    Raises:
        ValueError: neither of them.
    """
    if value is None:
        return None
    if isinstance(value, str) and not is_inline(value):
        return existing_path(value, info.context)
    if isinstance(value, str | Mapping) and value:
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
        return list(value)
    raise ValueError("must be a path, the text of a manifest, or its documents")


def is_inline(text: str) -> bool:
    """Whether a text is a manifest itself and not the path of one."""
    return "\n" in text.strip() or text.lstrip().startswith("{")


ManifestSource = Annotated[
    Any,
    BeforeValidator(checked_manifest),
    Field(json_schema_extra={"type": ["string", "object", "array", "null"], "items": {"type": "object"}}),
]


class HpaFlags(Spec):
    """Flags of the controller of all HPAs, also of those KEDA makes."""

    sync_period_s: Positive = 15.0
    """HPA: time between two syncs."""

    downscale_stabilization_s: NonNegative = 300.0
    """HPA: window in which the highest recommendation counts, where the manifest has none."""

    tolerance: NonNegative = 0.1
    """HPA: how far a ratio may be from 1 without a change."""

    cpu_initialization_period_s: NonNegative = 300.0
    """HPA: how long the cpu of a young worker counts only under conditions."""

    initial_readiness_delay_s: NonNegative = 30.0
    """HPA: how soon after its start an unready worker is taken to have never been ready."""

    scale_to_zero: bool = False
    """HPA: whether minReplicas may be 0."""


class ManifestKeys(HpaFlags):
    """What a manifest does not say: flags of the controllers, and what its metrics stand for."""

    metric_map: dict[str, AnyMetric] = Field(default_factory=dict)
    """What stands for a metric's name, a trigger's name or a whole PromQL query."""

    resource_map: dict[Literal["cpu", "memory"], AnyMetric] = Field(default_factory=dict)
    """What stands for cpu or memory, as {cpu: busy}."""

    start_of_run: Moment = "2025-01-06T00:00:00+00:00"
    """The wall clock at virtual time 0, for cron; UTC unless it says otherwise."""


class FromManifest(ManifestKeys, PolicySpec):
    """A policy that can be read from a manifest instead of its own keys."""

    manifest: ManifestSource = None
    """A path, the text of one or several documents, or the documents."""

    name: str | None = None
    """Which autoscaler of the manifest, where there are several."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        own = self._own_keys()
        if self.manifest is not None:
            for key in own:
                field = type(self).model_fields[key]
                if getattr(self, key) != field.get_default(call_default_factory=True):
                    yield (key,), "is not possible with a manifest, which says it itself"
        else:
            for key in ("name", "metric_map", "resource_map"):
                if getattr(self, key):
                    yield (key,), "is possible only with a manifest"

    def _own_keys(self) -> list[str]:
        shared = {"kind", *FromManifest.model_fields}
        return [key for key in type(self).model_fields if key not in shared]


class ManifestScaling(FromManifest):
    """A manifest: HorizontalPodAutoscaler, ScaledObject or Knative Service, as it is."""

    kind_is_needed = False

    kind: Literal["manifest"] = "manifest"
    """Kind of policy; may be left out beside `manifest`."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        if self.manifest is None:
            yield ("manifest",), "missing, and has no default"


def named_by_its_manifest(value: Any) -> Any:
    """A policy that is only a manifest needs no kind."""
    if isinstance(value, Mapping) and "manifest" in value and "kind" not in value:
        return {**value, "kind": "manifest"}
    return value
