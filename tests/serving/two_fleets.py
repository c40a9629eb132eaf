"""The serving of a scenario with two fleets, to be looked at while it runs."""

from __future__ import annotations

from typing import Any

from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.serving.controller import Controller
from dynamo_sim.serving.disaggregated import DisaggregatedServing
from dynamo_sim.simulation import _Run
from dynamo_sim.workload.build import build_source


def build(
    scenario: Scenario, controller: Controller | None = None, grace_ms: float | None = None
) -> DisaggregatedServing:
    """Everything put together; ``grace_ms`` is how long draining workers of both fleets may go on."""
    grace_s = None if grace_ms is None else grace_ms / 1000.0
    shorter: dict[str, Any] = {
        name: fleet.model_copy(update={"drain_grace_s": grace_s}) for name, fleet in scenario.fleets.items()
    }
    scenario = scenario.model_copy(update=shorter)
    source = build_source(
        scenario.workload,
        engine_block_size=scenario.fleets["prefill"].engine.block_size,
        concurrency=scenario.limits.concurrency,
        disaggregated=True,
    )
    return _Run(scenario, controller, source, None, None).disaggregated()
