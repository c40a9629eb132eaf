"""KEDA's ScaledObject: the operator that wakes and sleeps a fleet, and the HPA below it (`spec 10, 3`)."""

from __future__ import annotations

from dynamo_sim.autoscaling.kubernetes.keda.policy import KedaPolicy
from dynamo_sim.autoscaling.kubernetes.keda.spec import (
    CronTrigger,
    MetricTrigger,
    Modifiers,
    ResourceTrigger,
    ScaledObjectSpec,
)

__all__ = [
    "CronTrigger",
    "KedaPolicy",
    "MetricTrigger",
    "Modifiers",
    "ResourceTrigger",
    "ScaledObjectSpec",
]
