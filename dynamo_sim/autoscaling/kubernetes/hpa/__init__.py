"""The HorizontalPodAutoscaler, rule by rule (`spec 10, 2`)."""

from __future__ import annotations

from dynamo_sim.autoscaling.kubernetes.hpa.policy import HpaPolicy
from dynamo_sim.autoscaling.kubernetes.hpa.spec import HpaMetric, HpaSpec

__all__ = ["HpaMetric", "HpaPolicy", "HpaSpec"]
