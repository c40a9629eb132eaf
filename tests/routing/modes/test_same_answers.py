"""What a router sees does not depend on how far workers have computed ahead."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.routing.modes.loads import MODES, answer, random_scenario, without_lockstep
from tests.routing.modes.plain import PlainLeastLoaded

CASES = int(os.environ.get("DYNAMO_SIM_ROUTING_CASES", "6"))
WITHOUT_KV_USAGE = [
    mode for mode in MODES if mode.get("by") != "kv_usage" and mode["mode"] != "endpoint_picker"
]
WITHOUT_KV_USAGE += [
    mode | {"weights": {"kv_cache_utilization": 0.0}} for mode in MODES if mode["mode"] == "endpoint_picker"
]
NAMES = ["-".join(str(part) for part in mode.values() if not isinstance(part, dict)) for mode in MODES]


@pytest.mark.parametrize("routing", MODES, ids=NAMES)
def test_stretches_change_no_answer(routing: dict[str, Any]) -> None:
    for index in range(CASES):
        scenario = random_scenario(7, index, routing)
        assert answer(scenario) == answer(scenario.with_(**{"limits.max_stretch_passes": 1})), index


@pytest.mark.parametrize("routing", WITHOUT_KV_USAGE)
def test_lockstep_changes_no_answer(routing: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a pass the KV usage shown is that after it, or before it where sequences advance together."""
    scenarios = [
        random_scenario(8, index, routing).with_(**{"fleet.drain_grace_s": None}) for index in range(CASES)
    ]
    answers = [answer(scenario) for scenario in scenarios]
    without_lockstep(monkeypatch)
    assert [answer(scenario) for scenario in scenarios] == answers


@pytest.mark.parametrize("routing", [mode for mode in MODES if mode["mode"] == "least_loaded"])
def test_what_least_loaded_remembers_is_what_a_look_at_every_worker_shows(routing: dict[str, Any]) -> None:
    for index in range(3 * CASES):
        scenario = random_scenario(9, index, routing)
        assert answer(scenario) == answer(scenario, PlainLeastLoaded(routing.get("by", "in_flight"))), index
