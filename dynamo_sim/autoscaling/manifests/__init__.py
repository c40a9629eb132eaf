"""Manifests as they run in a cluster: HPA, KEDA ScaledObject, Knative annotations (`spec 10, 2.1, 3.1, 4.1, 8.4`)."""

from __future__ import annotations

from dynamo_sim.autoscaling.manifests.load import Manifest, load_manifest
from dynamo_sim.autoscaling.manifests.options import ManifestOptions
from dynamo_sim.autoscaling.manifests.promql import parse_promql

__all__ = ["Manifest", "ManifestOptions", "load_manifest", "parse_promql"]
