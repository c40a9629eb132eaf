"""The section `routing` (spec 06, 6.3 and 10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario import KvRouting, Scenario, load_scenario
from dynamo_sim.scenario.effects import without_effect

LOAD = {"kind": "synthetic", "input_tokens": 10, "output_tokens": 2, "request_count": 3}
FAMILY = {"policy_family": "latency", "cache_bucket": "all", "quantum": 64}
POLICY = {
    "default_policy_family": "latency",
    "uncached_isl_buckets": [{"min_tokens": 0, "bucket": "all"}],
    "policy_classes": [{"name": "l", **FAMILY}, {"name": "vip", "quantum": 8}],
}


def scenario(**routing: Any) -> Scenario:
    return Scenario.from_dict(
        {"name": "x", "workload": LOAD, "fleet": {"workers": 2}, "routing": {"mode": "kv_router", **routing}}
    )


def refusal(**routing: Any) -> str:
    with pytest.raises(ScenarioError) as caught:
        scenario(**routing)
    return str(caught.value)


def test_the_older_weight_stands_for_the_scale_and_zero_for_no_credit() -> None:
    weighted = KvRouting(mode="kv_router", overlap_score_weight=2.5, prefill_load_scale=0.1)
    assert (weighted.load_scale, weighted.credit) == (2.5, 1.0)
    assert KvRouting(mode="kv_router", overlap_score_weight=0.0).credit == 0.0


@pytest.mark.parametrize(
    ("routing", "message"),
    [
        ({"overlap_score_credit": 1.5}, "routing.overlap_score_credit: found 1.5; must be at most 1"),
        ({"overlap_score_weigth": 1}, "routing.overlap_score_weigth: unknown key; did you mean"),
        (
            {"router_track_output_blocks": True, "router_track_active_blocks": False},
            "needs router_track_active",
        ),
        (
            {"durable_kv_events": True, "use_kv_events": False},
            "routing.durable_kv_events: needs use_kv_events",
        ),
        ({"router_predicted_ttl_secs": 1.0, "use_kv_events": False}, "needs use_kv_events, which is false"),
        (
            {"serve_indexer": True, "use_remote_indexer": True},
            "cannot be true together with use_remote_indexer",
        ),
        ({"serve_indexer": True, "overlap_score_weight": 0.0}, "needs an overlap_score_credit above 0"),
        ({"router_snapshot_threshold": 0}, "routing.router_snapshot_threshold: found 0; must be at least 1"),
    ],
)
def test_values_that_the_reference_refuses_are_refused(routing: dict[str, Any], message: str) -> None:
    assert message in refusal(**routing)


def classes(*more: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"policy_classes": [{"name": "l", **FAMILY, **changes}, *more]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"foo": 1}, "router_policy_config.foo: unknown key"),
        ({"default_policy_family": None}, "default_policy_family: missing; a profile has"),
        (dict.fromkeys(POLICY), "missing; there must be a profile"),
        ({"policy_classes": []}, "policy_classes: must have at least 1 item"),
        ({"uncached_isl_buckets": [{"min_tokens": 1, "bucket": "all"}]}, "the first bucket must begin at 0"),
        (
            {"uncached_isl_buckets": [{"min_tokens": n, "bucket": b} for n, b in ((0, "all"), (0, "big"))]},
            "uncached_isl_buckets.1.min_tokens: found 0; must be above 0",
        ),
        (
            {"uncached_isl_buckets": [{"min_tokens": n, "bucket": "all"} for n in (0, 5)]},
            "the name of uncached_isl_buckets.0 too",
        ),
        (
            {"uncached_isl_buckets": [{"min_tokens": n, "bucket": b} for n, b in ((0, "all"), (5, "big"))]},
            "has no class for family 'latency' and bucket 'big'",
        ),
        (
            classes({"name": "l", "quantum": 1}),
            "policy_classes.1.name: found 'l', the name of policy_classes.0",
        ),
        (classes({"name": "m", **FAMILY}), "found family and bucket of policy_classes.0"),
        (classes(cache_bucket=None), "policy_classes.0.cache_bucket: missing"),
        (classes(cache_bucket="none"), "policy_classes.0.cache_bucket: found 'none'; must be one of all"),
        ({"default_policy_family": "batch"}, "found 'batch'; must be one of latency"),
        (classes({"name": "latency", "quantum": 1}), "found 'latency', the name of a family"),
        (classes(quantum=0), "policy_classes.0.quantum: found 0; must be at least 1"),
        (classes(queue_policy="lcfs"), "policy_classes.0.queue_policy: found 'lcfs'; must be one of"),
        (classes(prefill_busy_threshold_frac=-1.0), "must be at least 0"),
    ],
)
def test_policy_files_that_the_reference_refuses_are_refused(change: dict[str, Any], message: str) -> None:
    given = {key: value for key, value in {**POLICY, **change}.items() if value is not None}
    for each in given.get("policy_classes", ()):
        for key in [key for key, value in each.items() if value is None]:
            del each[key]
    assert message in refusal(router_policy_config=given)


def test_a_model_has_the_profile_of_its_name_or_the_one_of_the_file() -> None:
    profiles = {"models": {"small": POLICY}}
    assert scenario(router_policy_config=profiles).routing.profile is None  # type: ignore[union-attr]
    named = scenario(router_policy_config=profiles, model_name="small").routing
    assert [each.name for each in named.profile.policy_classes] == ["l", "vip"]  # type: ignore[union-attr]
    assert scenario(router_policy_config=POLICY, model_name="small").routing.profile is not None  # type: ignore[union-attr]


def test_errors_of_a_policy_file_name_its_line(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(
        "default_policy_family: latency\nuncached_isl_buckets: [{min_tokens: 0, bucket: all}]\n"
        "policy_classes:\n- {name: l, policy_family: latency, cache_bucket: all, quantum: 0}\n"
    )
    file = tmp_path / "x.yaml"
    file.write_text(
        "name: x\nworkload: {kind: synthetic, input_tokens: 8, output_tokens: 2, request_count: 3}\n"
        "routing: {mode: kv_router, router_policy_config: policy.yaml}\n"
    )
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file)
    assert str(caught.value) == (
        f"{file}:3:50: routing.router_policy_config: found 'policy.yaml'; {tmp_path}/policy.yaml:4:65: "
        "policy_classes.0.quantum: found 0; must be at least 1"
    )


def test_a_policy_file_becomes_a_part_of_the_scenario(tmp_path: Path) -> None:
    import json

    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    data = scenario().to_dict()
    data["routing"]["router_policy_config"] = "policy.json"
    read = Scenario.from_dict(data, tmp_path)
    assert read == scenario(router_policy_config=POLICY)
    assert Scenario.from_dict(read.to_dict()) == read


def test_keys_without_effect_are_named() -> None:
    idle = scenario(router_ttl_secs=5.0, router_temperature=0.5, tie_break="lowest_id", model_name="x")
    assert [key for key, _ in without_effect(idle)] == [
        "routing.router_ttl_secs",
        "routing.tie_break",
        "routing.model_name",
    ]
    classed = scenario(router_policy_config=POLICY, router_queue_policy="wspt", router_queue_threshold=1.0)
    assert [key for key, _ in without_effect(classed)] == [
        "routing.router_queue_threshold",
        "routing.router_queue_policy",
    ]
