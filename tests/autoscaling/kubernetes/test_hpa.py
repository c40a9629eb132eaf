"""The HPA as a whole: what it reads of the view, what it remembers, and the pitfalls of its rules.

Rules: `spec 10, 2.3 to 2.8`.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from dynamo_sim.autoscaling import (
    Decision,
    FleetView,
    HpaFlags,
    HpaMetric,
    HpaPolicy,
    HpaSpec,
    MetricQuery,
    Sample,
    StaticView,
    WorkerPhase,
    WorkerView,
)
from dynamo_sim.autoscaling.kubernetes.hpa.pods import Pod, PodSample, group_pods, pods_of
from dynamo_sim.autoscaling.kubernetes.hpa.quantity import quantity_milli, value_milli
from dynamo_sim.autoscaling.kubernetes.hpa.replicas import MetricFailed, total_replicas
from dynamo_sim.autoscaling.kubernetes.hpa.spec import HpaState, Tolerance
from dynamo_sim.autoscaling.kubernetes.hpa.stabilise import note_change
from dynamo_sim.autoscaling.kubernetes.manifests.behavior import parse_behavior
from dynamo_sim.scenario.autoscaler.behavior import RuleSpec

WAITING = MetricQuery("waiting")
TOTAL = MetricQuery("waiting", reduce="sum")


@pytest.mark.parametrize(
    ("quantity", "milli"),
    [
        ("10", 10_000),
        (10, 10_000),
        (0.5, 500),
        ("1500m", 1500),
        ("2k", 2_000_000),
        ("1Ki", 1_024_000),
        ("1Gi", 1024**3 * 1000),
        ("1e3", 1_000_000),
        ("1E", 10**21),
        ("100u", 1),  # a tenth of a thousandth is rounded up
        ("1.0001", 1001),
        (".5", 500),
        ("-3", -3000),
    ],
)
def test_quantities_are_exact_and_rounded_up(quantity: Any, milli: int) -> None:
    assert quantity_milli(quantity) == milli


@pytest.mark.parametrize("quantity", ["", "1 Gi", "ten", "1Xi", "1e", None, True, math.nan, [1]])
def test_what_is_no_quantity_is_refused(quantity: Any) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantity_milli(quantity)


def test_values_become_thousandths() -> None:
    assert [value_milli(v) for v in (1.2344, 1.2346, -1.0, math.nan, math.inf, 0.0)] == [
        1234,
        1235,
        0,
        0,
        0,
        0,
    ]


def hpa(metric: HpaMetric, flags: HpaFlags | None = None, behavior: Any = None, **more: Any) -> HpaPolicy:
    parsed = None if behavior is None else parse_behavior(behavior)
    return HpaPolicy(HpaSpec(**{"max_replicas": 20, **more}, metrics=(metric,), behavior=parsed), flags)


def pods_metric(target: float) -> HpaMetric:
    return HpaMetric("Pods", "AverageValue", int(target * 1000), WAITING, "waiting")


def external(kind: str, target: float) -> HpaMetric:
    return HpaMetric("External", kind, int(target * 1000), TOTAL, "waiting")


def test_a_pods_metric_averages_the_workers_that_have_samples() -> None:
    policy = hpa(pods_metric(10))
    decision = policy.decide(15, StaticView(samples={"waiting": {0: 30.0, 1: 20.0}}), FleetView.of(2))
    assert decision == Decision(4, "ScaleUpLimit", 5, 5, {"waiting": 25.0})


def test_series_of_workers_that_are_gone_do_not_count() -> None:
    policy = hpa(pods_metric(10))
    view = StaticView(samples={"waiting": {0: 10.0, 1: 10.0, 7: 500.0}})
    assert policy.decide(15, view, FleetView.of(2)).target == 2


def test_loading_workers_are_missing_and_pending_ones_unready() -> None:
    fleet = FleetView(
        (
            WorkerView(0, WorkerPhase.READY, 0.0, 0.0),
            WorkerView(1, WorkerPhase.LOADING, 5.0),
            WorkerView(2, WorkerPhase.PULLING, 5.0),
            WorkerView(3, WorkerPhase.DRAINING, 0.0, 0.0),
            WorkerView(4, WorkerPhase.FAILED, 0.0),
        )
    )
    groups = group_pods(pods_of(fleet), {0: PodSample(1), 3: PodSample(1)}, False, 10.0)
    assert (groups.ready, groups.missing, groups.unready, groups.ignored) == ([0], [1], [2], [3, 4])


def test_starting_workers_damp_a_scale_up() -> None:
    # 40 / 10 is four times the target of the one that is ready; counted as 0, the three others halve that.
    policy = hpa(pods_metric(10))
    view = StaticView(samples={"waiting": {0: 40.0}})
    assert policy.decide(15, view, FleetView.of(1, starting=3)).desired == 4


def test_external_value_shrinks_while_workers_start() -> None:
    policy = hpa(external("Value", 4.4), behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    policy.decide(0, StaticView({"waiting": 4.4}), FleetView.of(3))
    shrunk = policy.decide(15, StaticView({"waiting": 8.6}), FleetView.of(1, starting=2))
    assert (shrunk.target, shrunk.desired) == (2, 2)


def test_external_value_counts_draining_workers_until_they_are_gone() -> None:
    policy = hpa(external("Value", 10), behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    policy.decide(0, StaticView({"waiting": 10.0}), FleetView.of(1))
    assert policy.decide(15, StaticView({"waiting": 5.0}), FleetView.of(1, draining=9)).desired == 5


def test_external_average_value_counts_the_starting_ones_too() -> None:
    policy = hpa(external("AverageValue", 10))
    assert policy.decide(15, StaticView({"waiting": 80.0}), FleetView.of(1, starting=3)).target == 8


def test_no_data_keeps_the_size_and_is_not_remembered() -> None:
    policy = hpa(external("Value", 10))
    decision = policy.decide(15, StaticView({"waiting": None}), FleetView.of(4))
    assert (decision.target, decision.reason) == (4, "no metric")
    assert decision.events == ("waiting: no data",)
    assert policy.state.history == [(4, 15)]  # the first recommendation only


def test_an_empty_behavior_differs_from_none() -> None:
    for behavior, sizes in ((None, [6, 12, 20]), ({}, [7, 14, 20])):
        policy, size, found = hpa(external("AverageValue", 1), behavior=behavior), 3, []
        for k in range(3):
            target = policy.decide(15 * k, StaticView({"waiting": 500.0}), FleetView.of(size)).target
            assert target is not None
            size = target
            found.append(size)
        assert found == sizes


def test_bounds_come_before_metrics_and_are_noted_as_changes() -> None:
    policy = hpa(external("Value", 10), behavior={}, min_replicas=3, max_replicas=5)
    above = policy.decide(0, StaticView(), FleetView.of(9))
    assert (above.target, above.reason, above.values) == (5, "above max", {})
    below = policy.decide(15, StaticView(), FleetView.of(1))
    assert (below.target, below.reason) == (3, "below min")
    assert (policy.state.downs, policy.state.ups) == ([(4, 0)], [(2, 15)])
    asleep = policy.decide(30, StaticView(), FleetView.of(0))
    assert (asleep.target, asleep.reason) == (0, "ScalingDisabled")


def every(period_s: float) -> tuple[RuleSpec, ...]:
    """Rules whose longest period is this one."""
    return tuple(RuleSpec(type="Pods", value=1, period_s=period) for period in (15, period_s))


def test_a_change_takes_the_slot_of_the_last_one_nobody_asks_about_any_more() -> None:
    events = [(1, 0.0), (2, 10.0), (3, 100.0)]
    note_change(events, 9, 120.0, every(60))
    assert events == [(1, 0.0), (9, 120.0), (3, 100.0)]
    note_change(events, 8, 121.0, every(121))  # exactly as old as the period: kept
    assert events[-1] == (8, 121.0)


def test_cpu_looks_at_readiness_and_a_young_sample_does_not_count() -> None:
    metric = HpaMetric("Resource", "Utilization", 50, MetricQuery("busy"), "cpu")
    policy = hpa(metric, HpaFlags(cpu_initialization_period_s=100))
    fleet = FleetView(
        (WorkerView(0, WorkerPhase.READY, 0.0, 20.0), WorkerView(1, WorkerPhase.READY, 0.0, 20.0))
    )
    young = StaticView(samples={"busy": {0: Sample(0.9, 30.0, 15.0), 1: Sample(0.9, 36.0, 15.0)}})
    # worker 0 was sampled over time before it was ready, so it counts as unready, that is as 0 on the way up
    assert policy.decide(40, young, fleet).desired == 2
    assert policy.decide(140, young, fleet).desired == 4


def test_own_tolerances_replace_the_flag() -> None:
    behavior = parse_behavior({"scaleUp": {"tolerance": "500m"}})
    tolerance = Tolerance.of(behavior, HpaFlags(tolerance=0.2))
    assert (tolerance.up, tolerance.down) == (0.5, 0.2)
    assert tolerance.covers(1.5) and tolerance.covers(0.8) and not tolerance.covers(0.79)


def test_totals_at_zero_workers() -> None:
    anything = Tolerance()
    assert total_replicas(0, "Value", 1000, 1001, [], anything) == 2
    assert total_replicas(0, "AverageValue", 1000, 0, [], anything) == 0
    with pytest.raises(MetricFailed, match="no workers"):
        total_replicas(2, "Value", 1000, 9000, [], anything)
    assert total_replicas(2, "Value", 1000, 9000, [Pod("a", ready=False)], anything) == 0


def test_metrics_say_what_they_cannot_be() -> None:
    for arguments in (
        ("Pods", "Value", 1),
        ("External", "Utilization", 1),
        ("Nonsense", "Value", 1),
        ("Pods", "AverageValue", 0),
    ):
        with pytest.raises(ValueError):
            HpaMetric(*arguments, WAITING)
    with pytest.raises(ValueError, match="router_queue is one value for the whole fleet"):
        HpaMetric("Pods", "AverageValue", 1000, MetricQuery("router_queue"))


def test_the_state_is_the_only_memory() -> None:
    policy = hpa(external("AverageValue", 10))
    assert policy.state == HpaState()
    assert policy.reads == (TOTAL,)
    assert policy.period_s == 15.0


@pytest.mark.parametrize("behavior", [None, {"scaleDown": {"stabilizationWindowSeconds": 120}}])
def test_what_a_stabilisation_window_holds_is_reported_in_plain_words(
    behavior: dict[str, Any] | None,
) -> None:
    more: dict[str, Any] = {} if behavior is None else {"behavior": behavior}
    policy = hpa(external("AverageValue", 10), **more)
    first = policy.decide(15, StaticView({"waiting": 60}), FleetView.of(6))
    held = policy.decide(30, StaticView({"waiting": 20}), FleetView.of(6))
    window = 300 if behavior is None else 120
    assert first.events == ()
    assert (held.target, held.desired, held.stabilised) == (6, 2, 6)
    assert held.events == (
        f"the metrics ask for 2; the stabilisation window of scale-down ({window} s) makes it 6",
    )


def test_a_window_of_scale_up_is_reported_too() -> None:
    policy = hpa(external("AverageValue", 10), behavior={"scaleUp": {"stabilizationWindowSeconds": 60}})
    policy.decide(15, StaticView({"waiting": 20}), FleetView.of(2))
    (event,) = policy.decide(30, StaticView({"waiting": 60}), FleetView.of(2)).events
    assert event == "the metrics ask for 6; the stabilisation window of scale-up (60 s) makes it 2"
