"""Knative's pod autoscaler (`spec 10, 4`)."""

from __future__ import annotations

from dynamo_sim.autoscaling.kubernetes.kpa.policy import KpaPolicy
from dynamo_sim.autoscaling.kubernetes.kpa.settings import KpaSettings

__all__ = ["KpaPolicy", "KpaSettings"]
