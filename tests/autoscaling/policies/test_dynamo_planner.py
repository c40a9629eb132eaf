"""The planner package: refused by name where it is missing, and driven through the bridge contract where it is not.

Rules: `spec 10, 6.1 to 6.4`.
"""

from __future__ import annotations

import math
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

import dynamo_sim as ds
from dynamo_sim.autoscaling import (
    DynamoPlanner,
    DynamoPlannerPolicy,
    FleetView,
    PlannerUnavailable,
    StaticView,
    engine_capabilities,
    unreachable_targets,
)
from dynamo_sim.autoscaling.policies.dynamo_planner import planner_is_installed
from dynamo_sim.errors import ScenarioError

CONFIG = {
    "mode": "agg",
    "backend": "mocker",
    "environment": "virtual",
    "optimization_target": "load",
    "enable_load_scaling": True,
    "enable_throughput_scaling": False,
    "decode_scale_up_kv_rate": 60,
    "decode_scale_down_kv_rate": 20,
}


def test_a_missing_package_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(PlannerUnavailable, match=r"ai-dynamo 1\.3\.1, which is not installed: pip install"):
        DynamoPlanner(CONFIG, {"decode": None})
    assert not planner_is_installed()


def test_another_version_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "1.6.1")
    with pytest.raises(PlannerUnavailable, match=r"ai-dynamo 1\.6\.1 is installed"):
        DynamoPlanner(CONFIG, {"decode": None})


def test_capabilities_as_the_replay_tool_derives_them() -> None:
    found = engine_capabilities(1000, 64, 8192, 256)
    assert (found["max_kv_tokens"], found["context_length"], found["num_gpu"]) == (64_000, 64_000, 1)
    assert engine_capabilities(0, 64, None, None)["max_kv_tokens"] is None


class Diagnosed(DynamoPlanner):
    """A planner that has decided already."""

    def __init__(self, **reasons: str | None) -> None:
        self._adapter = SimpleNamespace(
            _diagnostics_log=[SimpleNamespace(**{f"{k}_decision_reason": v for k, v in reasons.items()})],
            initial_tick_ms=lambda: 5000.0,
        )
        self.plans_throughput = "throughput" in reasons


@pytest.mark.parametrize(
    ("reasons", "word"),
    [
        ({"load": "scale_up", "throughput": "disabled"}, "scale_up"),
        ({"load": "disabled", "throughput": "scale"}, "scale"),
        ({"load": "no_change", "throughput": "model_not_ready"}, "no_change, model_not_ready"),
        ({"load": "disabled", "throughput": None}, "disabled"),
        ({}, ""),
    ],
)
def test_the_reason_is_that_of_whatever_kind_of_scaling_is_on(
    reasons: dict[str, str | None], word: str
) -> None:
    assert Diagnosed(**reasons).last_reason == word


def test_throughput_scaling_is_said_to_take_finished_requests_for_demand() -> None:
    (line,) = unreachable_targets(DynamoPlannerPolicy(Diagnosed(throughput="scale")))
    assert "takes finished requests for demand" in line
    assert unreachable_targets(DynamoPlannerPolicy(Diagnosed(load="scale_up"))) == []


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"environment": "kubernetes"}, "mode is not given, which means 'disagg'"),
        ({"mode": "prefill"}, "mode is 'prefill': the planner would look after separate fleets"),
        (
            {"mode": "agg", "load_predictor_warmup_trace": "/no/such.jsonl"},
            "there is no file '/no/such.jsonl'",
        ),
        ({"mode": "agg", "enable_power_awareness": True}, "no power is modelled"),
    ],
)
def test_a_configuration_that_cannot_act_on_one_fleet_is_refused(config: dict[str, Any], why: str) -> None:
    scenario = ds.Scenario.from_dict(
        {
            "name": "planner",
            "workload": {"kind": "synthetic", "input_tokens": 10, "output_tokens": 2, "request_count": 2},
            "fleet": {"workers": 1},
            "autoscaler": {"policy": {"kind": "dynamo_planner", "config": config}},
        }
    )
    with pytest.raises(ScenarioError) as caught:
        ds.run(scenario)
    assert why in str(caught.value)


needs_planner = pytest.mark.skipif(not planner_is_installed(), reason="needs ai-dynamo 1.3.1 and its planner")


def tick(now_ms: float, kv_tokens: int) -> dict[str, Any]:
    counters = ("prefill_requests", "decode_requests")
    row: dict[str, Any] = {"worker_id": 0, "wall_time": 0.02, **{f"num_{name}": 0 for name in counters}}
    for name in (
        "sum_prefill_tokens",
        "sum_prefill_kv_tokens",
        "num_queued_prefill",
        "sum_queued_prefill_tokens",
    ):
        row[name] = 0
    for name in ("num_queued_decode", "sum_queued_decode_kv_tokens"):
        row[name] = 0
    for name in (
        "var_prefill_length",
        "var_decode_kv_tokens",
        "var_queued_prefill_length",
        "var_queued_decode_kv_tokens",
    ):
        row[name] = 0.0
    row["sum_decode_kv_tokens"] = kv_tokens
    traffic = dict.fromkeys(("avg_isl", "avg_osl", "avg_ttft_ms", "avg_itl_ms", "avg_kv_hit_rate"), 0.0)
    traffic |= {"duration_s": 5.0, "num_req": 0, "hit_rate_count": 0, "accept_length_forward_count": 0}
    return {
        "now_ms": now_ms,
        "active_prefill_count": 0,
        "active_decode_count": 1,
        "total_prefill_count": 0,
        "total_decode_count": 1,
        "prefill_fpm_snapshots": [],
        "decode_fpm_snapshots": [row],
        "traffic": {**traffic, "avg_accept_length": None},
    }


@needs_planner
def test_the_planner_names_its_own_times_and_reasons() -> None:
    planner = DynamoPlanner(CONFIG, {"decode": engine_capabilities(1000, 64, 8192, 256)})
    policy = DynamoPlannerPolicy(planner)
    assert policy.first_at_s == 5.0
    quiet = policy.decide(5.0, StaticView(ticks=tick(5000.0, 30_000)), FleetView.of(1))
    assert (quiet.target, quiet.next_at_s) == (None, 10.0)
    grown = policy.decide(10.0, StaticView(ticks=tick(10_000.0, 60_000)), FleetView.of(1))
    assert (grown.target, grown.next_at_s) == (2, 15.0)
    report = planner.finalize({})
    assert [(event.at_s, event.to_count) for event in report.scaling_events] == [(10.0, 2)]
    assert report.html_report_path is None


@needs_planner
def test_a_configuration_the_package_refuses() -> None:
    with pytest.raises(ScenarioError, match="refuses its configuration"):
        DynamoPlanner({**CONFIG, "mode": "nonsense"}, {"decode": None})


def test_no_next_tick_means_never_again() -> None:
    class Silent(DynamoPlanner):
        def __init__(self) -> None:
            pass

        def initial_tick_ms(self) -> float:
            return 100.0

        def on_tick(self, metrics: dict[str, Any]) -> dict[str, Any]:
            return {"target_prefill": 0, "target_decode": 3, "next_tick_ms": None}

        last_reason = "because"

    decision = DynamoPlannerPolicy(Silent()).decide(0.1, StaticView(), FleetView.of(1))
    assert (decision.target, decision.reason, decision.next_at_s) == (3, "because", math.inf)
