"""Knative's pod autoscaler (`spec 10, 4`)."""

from __future__ import annotations

from dynamo_sim.autoscaling.kpa.policy import KpaPolicy
from dynamo_sim.autoscaling.kpa.settings import KpaSettings

__all__ = ["KpaPolicy", "KpaSettings"]
