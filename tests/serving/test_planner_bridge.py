"""The planner bridge: what a planner may answer, as the reference takes it, and what is refused in one line.

Rules: `spec 01, 10`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from dynamo_sim import PlannerBridge, run
from dynamo_sim.errors import ScenarioError, SimulationError
from dynamo_sim.scenario import Scenario

DATA = {
    "name": "bridge",
    "workload": {
        "kind": "synthetic",
        "input_tokens": 128,
        "output_tokens": 16,
        "request_count": 20,
        "arrival_interval_ms": 100.0,
    },
}
SILENT = {"target_prefill": None, "target_decode": None, "next_tick_ms": None}


class OneAnswer:
    """Gives an answer at its first tick and looks once more."""

    def __init__(self, answer: Any = SILENT, first: Any = 500.0) -> None:
        self.answer, self.first = answer, first
        self.seen: list[tuple[float, int]] = []

    def initial_tick_ms(self) -> Any:
        return self.first

    def on_tick(self, metrics: dict[str, Any]) -> Any:
        self.seen.append((metrics["now_ms"], metrics["total_decode_count"]))
        return self.answer if len(self.seen) == 1 else SILENT


class Forever:
    """Wants to be asked every second, whatever there is to do."""

    def initial_tick_ms(self) -> float:
        return 1000.0

    def on_tick(self, metrics: dict[str, Any]) -> dict[str, Any]:
        return {**SILENT, "next_tick_ms": metrics["now_ms"] + 1000.0}


def test_a_planner_is_not_asked_without_end_between_two_requests() -> None:
    rows = [
        {"timestamp": at_ms, "input_length": 8, "output_length": 2, "hash_ids": [1]} for at_ms in (0, 1e15)
    ]
    workload = {"kind": "trace", "records": rows, "trace_block_size": 64}
    bridge = PlannerBridge(Scenario.from_dict({"name": "gap", "workload": workload}))
    with pytest.raises(SimulationError, match=r"the planner would be evaluated 1,00.* in the wrong unit\?"):
        bridge.run(Forever())


class AsIndex:
    def __index__(self) -> int:
        return 2


class AsFloat:
    def __float__(self) -> float:
        return 1500.0


def seen(answer: Any, first: Any = 500.0) -> list[tuple[float, int]]:
    planner = OneAnswer(answer, first)
    PlannerBridge(Scenario.from_dict(DATA)).run(planner)
    return planner.seen


@pytest.mark.parametrize(
    ("target", "workers"), [(2, 2), (True, 1), (np.int64(3), 3), (np.array(2), 2), (AsIndex(), 2), (None, 1)]
)
def test_what_python_takes_for_an_index_is_a_count(target: Any, workers: int) -> None:
    assert seen({**SILENT, "target_decode": target, "next_tick_ms": 1500.0}) == [
        (500.0, 1),
        (1500.0, workers),
    ]


@pytest.mark.parametrize(
    "target",
    [2.0, np.float64(2), np.bool_(True), "2", [], -1, 2**70, pytest.param(10**5000, id="endless"), 100_001],
)
@pytest.mark.parametrize("key", ["target_decode", "target_prefill"])
def test_anything_else_is_no_count(key: str, target: Any) -> None:
    with pytest.raises(SimulationError, match=rf"at 500\.0 ms: {key} must be .*, got [^\n]{{1,120}}$"):
        seen({**SILENT, key: target})


@pytest.mark.parametrize("following", [1500, np.int64(1500), np.float32(1500), np.array(1500.0), AsFloat()])
def test_what_is_a_real_number_is_a_time(following: Any) -> None:
    assert [at_ms for at_ms, _ in seen({**SILENT, "next_tick_ms": following})] == [500.0, 1500.0]


@pytest.mark.parametrize("following", [True, 0, -1.0, float("nan"), float("inf"), AsIndex()])
def test_a_time_that_is_not_later_ends_the_ticks(following: Any) -> None:
    assert len(seen({**SILENT, "next_tick_ms": following})) == 1


@pytest.mark.parametrize("no_time", ["1500", [], 10**400, pytest.param(10**5000, id="endless")])
def test_a_time_that_is_none_is_refused_in_one_line(no_time: Any) -> None:
    with pytest.raises(
        SimulationError, match=r"^the planner's answer at 500\.0 ms: next_tick_ms must be a time in ms"
    ):
        seen({**SILENT, "next_tick_ms": no_time})
    with pytest.raises(
        SimulationError, match=r"^the planner's initial_tick_ms\(\) must be a time in ms, got .{1,120}$"
    ):
        seen(SILENT, no_time)
    with pytest.raises(SimulationError, match="got None"):
        seen(SILENT, None)


def test_nothing_is_applied_of_an_answer_that_is_refused() -> None:
    planner = OneAnswer({**SILENT, "target_decode": 3, "next_tick_ms": "x"})
    with pytest.raises(SimulationError, match="next_tick_ms"):
        PlannerBridge(Scenario.from_dict(DATA)).run(planner)


@pytest.mark.parametrize(
    ("answer", "message"), [(None, "must be a dict"), ([], "must be a dict"), ({}, "lacks target_p")]
)
def test_an_answer_is_a_mapping_with_all_three_keys(answer: Any, message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        seen(answer)
    assert len(seen(MappingProxyType({**SILENT, "more": 1}))) == 1


@pytest.mark.parametrize(
    ("given", "shown"),
    [("x.yaml", r"a str; load_scenario\(path\)"), ({}, r"a dict; Scenario\.from_dict"), (None, "None")],
)
def test_what_is_no_scenario_is_refused_with_the_way_to_one(given: Any, shown: str) -> None:
    with pytest.raises(ScenarioError, match=rf"^run\(\) needs a Scenario, got {shown}"):
        run(given)
    with pytest.raises(ScenarioError, match=rf"^PlannerBridge\(\) needs a Scenario, got {shown}"):
        PlannerBridge(given)


def test_what_is_no_planner_is_refused() -> None:
    with pytest.raises(
        ScenarioError, match=r"a planner has the methods initial_tick_ms\(\) and on_tick\(metrics\)"
    ):
        PlannerBridge(Scenario.from_dict(DATA)).run(None)  # type: ignore[arg-type]


def test_a_scenario_that_scales_by_itself_has_no_room_for_a_planner() -> None:
    own = {**DATA, "autoscaler": {"policy": {"kind": "fixed", "count": 2}}}
    with pytest.raises(ScenarioError, match="remove the scenario's own autoscaler"):
        PlannerBridge(Scenario.from_dict(own))
