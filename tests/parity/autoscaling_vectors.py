"""Answers to the vectors of the ``autoscaling`` topic (`spec 10, 12`): one entry a case, shaped as its ``expected``."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynamo_sim.autoscaling.budget import clamp_pair_to_budget, clamp_to_budget
from dynamo_sim.autoscaling.fleet_view import FleetView, StaticView
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.kubernetes.hpa.limits import limit_default, limit_with_behavior
from dynamo_sim.autoscaling.kubernetes.hpa.pods import Pod, PodSample, group_pods
from dynamo_sim.autoscaling.kubernetes.hpa.replicas import MetricFailed, per_pod_replicas, total_replicas
from dynamo_sim.autoscaling.kubernetes.hpa.spec import (
    HpaState,
    Tolerance,
)
from dynamo_sim.autoscaling.kubernetes.hpa.stabilise import stabilise_default, stabilise_with_behavior
from dynamo_sim.autoscaling.kubernetes.hpa.sync import begin_history, sync
from dynamo_sim.autoscaling.kubernetes.keda import KedaPolicy
from dynamo_sim.autoscaling.kubernetes.keda.spec import MetricTrigger
from dynamo_sim.autoscaling.kubernetes.kpa.decider import Decider
from dynamo_sim.autoscaling.kubernetes.kpa.window import BucketWindow
from dynamo_sim.autoscaling.kubernetes.manifests.keda import scaled_object
from dynamo_sim.autoscaling.policies.dynamo_planner import DynamoPlanner, planner_is_installed
from dynamo_sim.autoscaling.policies.sla.predictors import ConstantPredictor, KalmanPredictor, Predictor
from dynamo_sim.autoscaling.policies.step_scaling import Alarm
from dynamo_sim.autoscaling.policies.target_tracking import TargetTrackingPolicy
from dynamo_sim.scenario.autoscaler.behavior import BehaviorSpec, DirectionSpec, RuleSpec
from dynamo_sim.scenario.autoscaler.kpa import KpaScaling
from dynamo_sim.scenario.autoscaler.manifest import HpaFlags
from dynamo_sim.scenario.autoscaler.step_scaling import AlarmSpec
from dynamo_sim.scenario.autoscaler.target_tracking import TargetTrackingScaling

VECTORS = Path(__file__).parent / "cases" / "autoscaling"

Input = dict[str, Any]


def vector_files() -> dict[str, dict[str, Any]]:
    """All golden vector files by name."""
    with gzip.open(VECTORS / "vectors.json.gz", "rt", encoding="utf-8") as source:
        files: dict[str, dict[str, Any]] = json.load(source)
    return files


def answer(vectors: dict[str, Any]) -> dict[str, Any]:
    """``{"cases": [...]}`` for one vector file; None for what needs a package that is not installed."""
    kind = vectors["kind"]
    if kind == "planner_adapter":
        return {"cases": planner_adapter(vectors)}
    return {"cases": [ANSWERS[kind](case["input"]) for case in vectors["cases"]]}


def expected(vectors: dict[str, Any]) -> list[Any]:
    """What the entries of `answer` should be."""
    if vectors["kind"] == "planner_adapter":
        return list(vectors["expected"])
    return [case["expected"] for case in vectors["cases"]]


# ---------------------------------------------------------------- HPA


def hpa_metric(given: Input) -> Any:
    target = given["target"]
    kind = target["type"]
    tolerance = Tolerance(given["tolerance"]["scaleUp"], given["tolerance"]["scaleDown"])
    pods = _pods(given)
    current = given["current_replicas"]
    number = target.get("averageUtilization", target.get("averageValue_milli", target.get("value_milli")))
    try:
        if given["source"] in ("Object", "External"):
            total = given["value_milli"]
            if total is None:
                raise MetricFailed("no data")
            total = sum(total) if isinstance(total, list) else total
            shown = (
                given["status_replicas"] if kind == "AverageValue" and "status_replicas" in given else current
            )
            return {"replicas": total_replicas(shown, kind, number, total, pods, tolerance)}
        samples = _samples(given)
        replicas = per_pod_replicas(
            current, kind, number, _groups(given), samples, given.get("requests_milli", {}), tolerance
        )
    except MetricFailed:
        return {"error": True}
    return {"replicas": replicas}


def hpa_groups(given: Input) -> Any:
    groups = _groups(given)
    return {
        "ready": len(groups.ready),
        "unready": sorted(groups.unready),
        "missing": sorted(groups.missing),
        "ignored": sorted(groups.ignored),
    }


def hpa_stabilise(given: Input) -> Any:
    state = HpaState([(entry["replicas"], entry["at_s"]) for entry in given["history"]])
    now, proposal = given["now_s"], given["proposal"]
    if given["behavior"]:
        up, down = given["scale_up_window_s"], given["scale_down_window_s"]
        stabilised = stabilise_with_behavior(state, given["current_replicas"], proposal, now, up, down)
    else:
        stabilised = stabilise_default(state, proposal, now, given["window_s"])
    return {"stabilised": stabilised, "history_after": [replicas for replicas, _ in state.history]}


def hpa_rate(given: Input) -> Any:
    state = HpaState(ups=_events(given["scale_up_events"]), downs=_events(given["scale_down_events"]))
    behavior = _behavior({"behavior": given})
    assert behavior is not None
    replicas, reason = limit_with_behavior(
        given["current_replicas"],
        given["stabilised"],
        given["min_replicas"],
        given["max_replicas"],
        behavior,
        state,
        given["now_s"],
    )
    return {"replicas": replicas, "reason": reason}


def hpa_default_limits(given: Input) -> Any:
    replicas, reason = limit_default(
        given["current_replicas"], given["stabilised"], given["min_replicas"], given["max_replicas"]
    )
    return {"replicas": replicas, "reason": reason}


def hpa_sync(given: Input) -> Any:
    state = HpaState([(entry["replicas"], entry["at_s"]) for entry in given["history"]])
    result = sync(
        state,
        given["current_replicas"],
        given["min_replicas"],
        given["max_replicas"],
        _behavior(given),
        lambda: given["proposals"],
        given["now_s"],
        _flags(given),
    )
    return {"replicas": result.target, "reason": result.reason}


def hpa_timeline(given: Input) -> Any:
    state, current = HpaState(), given["current_replicas"]
    behavior, settings = _behavior(given), _flags(given)
    replicas, reasons = [], []
    for index, proposal in enumerate(given["proposals"]):
        now = index * given["sync_period_s"]
        begin_history(state, current, now)
        low, high = given["min_replicas"], given["max_replicas"]
        result = sync(state, current, low, high, behavior, lambda p=proposal: [p], now, settings)  # type: ignore[misc]
        current = result.target
        replicas.append(current)
        reasons.append(result.reason)
    return {"replicas": replicas, "reasons": reasons}


def _flags(given: Input) -> HpaFlags:
    return HpaFlags(
        sync_period_s=given.get("sync_period_s", 15.0),
        downscale_stabilization_s=given.get("downscale_stabilization_s", 300.0),
    )


def _behavior(given: Input) -> BehaviorSpec | None:
    """As in a manifest, without its checks: the controller's own tests also use rules no manifest may hold."""
    behavior = given["behavior"]
    if behavior is None:
        return None
    return BehaviorSpec(
        scale_up=_direction(behavior.get("scaleUp") or {}),
        scale_down=_direction(behavior.get("scaleDown") or {}),
    )


def _direction(given: Input) -> DirectionSpec:
    rules = given.get("policies")
    return DirectionSpec.model_construct(
        rules=None if rules is None else tuple(_rule(rule) for rule in rules),
        select=given.get("selectPolicy") or "Max",
        stabilization_window_s=given.get("stabilizationWindowSeconds"),
    )


def _rule(given: Input) -> RuleSpec:
    return RuleSpec.model_construct(type=given["type"], value=given["value"], period_s=given["periodSeconds"])


def _events(entries: list[dict[str, Any]]) -> list[tuple[int, float]]:
    return [(entry["change"], entry["at_s"]) for entry in entries]


def _pods(given: Input) -> list[Pod]:
    pods = []
    for pod in given.get("pods", ()):
        condition = pod["ready_condition"]
        pods.append(
            Pod(
                pod["name"],
                pod["phase"],
                pod["started_s"],
                None if condition is None else condition["status"],
                0.0 if condition is None else condition["since_s"],
                pod.get("deleting", False),
            )
        )
    return pods


def _samples(given: Input) -> dict[str, PodSample]:
    return {
        pod: PodSample(m["value_milli"], m.get("timestamp_s", float("-inf")), m.get("window_s", 0.0))
        for pod, m in (given.get("metrics") or {}).items()
    }


def _groups(given: Input) -> Any:
    return group_pods(
        _pods(given),
        _samples(given),
        given.get("resource") == "cpu",
        given["now_s"],
        given.get("cpu_initialization_period_s", 300.0),
        given.get("initial_readiness_delay_s", 30.0),
    )


# ---------------------------------------------------------------- KEDA


def keda_timeline(given: Input) -> Any:
    trigger = given["trigger"]
    manifest = {
        **given["scaled_object"],
        "pollingInterval": given["polling_interval_s"],
        "triggers": [
            {
                "type": "prometheus",
                "metricType": trigger["metricType"],
                "metadata": {
                    "threshold": str(trigger["threshold"]),
                    "activationThreshold": str(trigger["activationThreshold"]),
                    "query": "sum(vllm:num_requests_waiting)",
                },
            }
        ],
    }
    spec = scaled_object(manifest).spec
    triggers = tuple(replace(t, ignore_null=False) for t in spec.triggers if isinstance(t, MetricTrigger))
    period = given["hpa_sync_period_s"]
    policy = KedaPolicy(replace(spec, triggers=triggers), HpaFlags(sync_period_s=period))
    current, found = given["start_replicas"], []
    for index, value in enumerate(given["values"]):
        now, view = index * period, StaticView({"waiting": value})
        if now % given["polling_interval_s"] == 0:
            decision = policy.operator.decide(now, view, FleetView.of(current))
            current = current if decision.target is None else decision.target
        after_operator = current
        target = policy.hpa.decide(now, view, FleetView.of(current)).target
        current = current if target is None else target
        found.append({"at_s": now, "after_operator": after_operator, "replicas": current})
    return found


# ---------------------------------------------------------------- Knative


def _decider(config: Input) -> Decider:
    spec = KpaScaling(
        target=config["total"],
        utilization=config["target"] / config["total"],
        target_burst_capacity=config["target_burst_capacity"],
        max_scale_up_rate=config["max_scale_up_rate"],
        max_scale_down_rate=config["max_scale_down_rate"],
        window_s=config["stable_window_s"],
        scale_down_delay_s=config["scale_down_delay_s"],
        activation_scale=config["activation_scale"],
    )
    threshold = {
        "panic_threshold_percentage": 100 * config["panic_threshold"]
    }  # some are beyond Knative's range
    return Decider(spec.model_copy(update=threshold), config["reachable"])


def kpa_decision(given: Input) -> Any:
    decider = _decider(given["config"])
    if given["start"] is not None:
        decider.panic_since_s = given["start"]["panic_since_s"]
        decider.max_desired = given["start"]["max_panic_workers"]
    found = []
    for step in given["steps"]:
        tick = decider.tick(step["now_s"], step["ready"], step["stable"], step["panic"])
        found.append(
            {
                "desired": tick.desired,
                "excess_burst_capacity": tick.excess_burst_capacity,
                "in_panic": tick.in_panic,
            }
        )
    return found


def kpa_window(given: Input) -> Any:
    window = BucketWindow(given["window_s"])
    for record in given["records"]:
        window.record(record["at_s"], record["value"])
    return {"averages": [window.average(at) for at in given["asked_at_s"]]}


# ---------------------------------------------------------------- simple policies


def step_scaling(given: Input) -> Any:
    keys = ("threshold", "direction", "steps", "adjustment_type", "min_adjustment_magnitude")
    alarm = Alarm(AlarmSpec.model_validate({"metric": "kv_usage", **{key: given[key] for key in keys}}))
    bounds = Bounds(given["min"], given["max"])
    return {"target": bounds.clamp(alarm.target(given["current"], given["value"]))}


def target_tracking(given: Input) -> Any:
    """One evaluation whose alarms need no other, of a fleet without starting workers."""
    keys = {"metric": "in_flight", "target": given["target"], "margin": given["margin"]}
    at_once = {"scale_out_periods": 1, "scale_in_periods": 1, "target_kind": given.get("kind", "average")}
    policy = TargetTrackingPolicy(
        TargetTrackingScaling.model_validate(keys | at_once), Bounds(given["min"], given["max"])
    )
    decision = policy.decide(60.0, StaticView({"in_flight": given["value"]}), FleetView.of(given["current"]))
    return {"target": decision.target}


# ---------------------------------------------------------------- planner


def planner_budget(given: Input) -> Any:
    band = given["min_gpu_budget"], given["max_gpu_budget"], given["min_endpoint"]
    if "replicas" in given:
        return {"replicas": clamp_to_budget(given["replicas"], given["gpus_per_worker"], *band)}
    prefill, decode = clamp_pair_to_budget(
        given["prefill"], given["decode"], given["gpus_per_prefill"], given["gpus_per_decode"], *band
    )
    return {"prefill": prefill, "decode": decode}


def planner_predictor(given: Input) -> Any:
    options = given["options"]
    predictor: Predictor
    if given["predictor"] == "constant":
        predictor = ConstantPredictor()
    elif given["predictor"] == "kalman":
        names = {"kalman_q_level": "q_level", "kalman_q_trend": "q_trend", "kalman_r": "r"}
        arguments = {names[name]: value for name, value in options.items() if name in names}
        predictor = KalmanPredictor(log1p=options.get("load_predictor_log1p", False), **arguments)
    else:
        return None
    predictions = []
    for value in given["series"]:
        predictor.add(value)
        predictions.append(predictor.predict())
    return {"predictions": predictions}


def planner_adapter(vectors: dict[str, Any]) -> list[Any]:
    """The real package's answer to every tick; None for each where it is not installed."""
    if not planner_is_installed():
        return [None] * len(vectors["ticks"])
    planner = DynamoPlanner(vectors["planner_config"], vectors["capabilities"])
    try:
        planner.initial_tick_ms()
        return [planner.on_tick(tick["metrics"]) for tick in vectors["ticks"]]
    finally:
        planner.close()


ANSWERS: dict[str, Callable[[Input], Any]] = {
    "hpa_metric": hpa_metric,
    "hpa_groups": hpa_groups,
    "hpa_stabilise": hpa_stabilise,
    "hpa_rate": hpa_rate,
    "hpa_default_limits": hpa_default_limits,
    "hpa_sync": hpa_sync,
    "hpa_timeline": hpa_timeline,
    "keda_timeline": keda_timeline,
    "kpa_decision": kpa_decision,
    "kpa_window": kpa_window,
    "step_scaling": step_scaling,
    "target_tracking": target_tracking,
    "planner_budget": planner_budget,
    "planner_predictor": planner_predictor,
}
