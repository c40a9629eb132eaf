"""Knative's pod autoscaler (`spec 10, 4`)."""

from __future__ import annotations

from dynamo_sim.autoscaling.kubernetes.kpa.policy import KpaPolicy

__all__ = ["KpaPolicy"]
