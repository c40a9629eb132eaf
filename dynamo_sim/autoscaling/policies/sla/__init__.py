"""A policy that keeps latency targets by a model of the engine learnt from its passes (`spec 10, 6.5 and 6.7`)."""

from __future__ import annotations

from dynamo_sim.autoscaling.policies.sla.capacity import EngineLimits
from dynamo_sim.autoscaling.policies.sla.policy import SlaPolicy, SlaSettings

__all__ = ["EngineLimits", "SlaPolicy", "SlaSettings"]
