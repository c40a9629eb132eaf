"""Which document of a manifest is an autoscaler, by its apiVersion and kind together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

FAMILIES = {
    ("autoscaling", "HorizontalPodAutoscaler"): "hpa",
    ("keda.sh", "ScaledObject"): "keda",
    ("serving.knative.dev", "Service"): "kpa",
    ("serving.knative.dev", "Configuration"): "kpa",
    ("serving.knative.dev", "Revision"): "kpa",
    ("autoscaling.internal.knative.dev", "PodAutoscaler"): "kpa",
}
"""What is read, by API group and kind."""

_KSERVE = "is not read: KServe makes a Knative Service, an HPA or a ScaledObject of it; write that one"
_VOLCANO = "is not read: kthena's own autoscaler decides by it, which is not modelled"

NOT_MODELLED = {
    ("autoscaling.aibrix.ai", "PodAutoscaler"): (
        "of AIBrix is not read: AIBrix's own autoscaler decides by it, which is not modelled"
    ),
    ("serving.kserve.io", "InferenceService"): _KSERVE,
    ("serving.kserve.io", "LLMInferenceService"): _KSERVE,
    ("ray.io", "RayService"): "is not read: Ray Serve's own autoscaler decides by it, which is not modelled",
    ("ray.io", "RayCluster"): "is not read: Ray's own autoscaler decides by it, which is not modelled",
    ("llmd.ai", "VariantAutoscaling"): (
        "is not read: llm-d's saturation analysis decides by it, which is not modelled"
    ),
    ("workload.serving.volcano.sh", "AutoscalingPolicy"): _VOLCANO,
    ("workload.serving.volcano.sh", "AutoscalingPolicyBinding"): _VOLCANO,
    ("kubeai.org", "Model"): "is not read: KubeAI's own autoscaler decides by it, which is not modelled",
    ("nvidia.com", "DynamoGraphDeployment"): (
        "is not read: write the planner's configuration of its arguments as "
        "policy: {kind: dynamo_planner, config: ...}"
    ),
    ("http.keda.sh", "HTTPScaledObject"): "is not read: KEDA's HTTP add-on is not modelled",
    ("keda.sh", "ScaledJob"): "starts jobs, it does not scale a fleet",
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"): "changes the size of pods, not their number",
}
"""What is said of other autoscalers, by API group and kind."""

CLOUD_RUN = (
    "with keys of run.googleapis.com is one of Cloud Run, whose own autoscaler is not modelled; without those keys it "
    "is read as Knative's"
)

_COMMON_WORDS = ("Service", "Configuration", "Revision", "Model")
"""Kinds of many APIs."""


def groups_of(kind: str) -> list[str]:
    """The API groups in which a kind is known, as an autoscaler or as one that is not modelled."""
    return [group for group, known in (*FAMILIES, *NOT_MODELLED) if known == kind]


def group_of(kind: str, version: str | None) -> str:
    """The API group of a document; without an apiVersion the only one in which its kind is known, if there is one."""
    if version is not None:
        return version.split("/")[0]
    groups = [] if kind in _COMMON_WORDS else groups_of(kind)
    return groups[0] if len(groups) == 1 else ""


def is_cloud_run(document: Mapping[str, Any]) -> bool:
    """Whether a Knative Service belongs to Cloud Run, which has the same kind and another autoscaler."""
    return any(
        str(key).startswith(("run.googleapis.com/", "cloud.googleapis.com/")) for key in _marks(document)
    )


def _marks(document: Mapping[str, Any]) -> Iterator[Any]:
    """Keys of the annotations and labels of a Service and of its template."""
    spec = document.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    for holder in (document, template):
        metadata = holder.get("metadata") if isinstance(holder, Mapping) else None
        for key in ("annotations", "labels"):
            marks = metadata.get(key) if isinstance(metadata, Mapping) else None
            if isinstance(marks, Mapping):
                yield from marks
