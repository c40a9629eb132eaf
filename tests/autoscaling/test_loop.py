"""Loops are evaluated at absolute times, in a fixed order within an instant; what they decide is applied and recorded.

Rules: `spec 10, 1`.
"""

from __future__ import annotations

import math

import pytest

from dynamo_sim.autoscaling import (
    Bounds,
    Decision,
    FixedPolicy,
    FleetView,
    Loop,
    MetricQuery,
    PolicyRunner,
    StaticView,
    TargetEffect,
    View,
    loops_of,
    reads_of,
)
from dynamo_sim.autoscaling.policy import HPA, KEDA_OPERATOR
from dynamo_sim.scenario.autoscaler.fixed import FixedScaling


class PretendFleet:
    """A fleet that scales at once and remembers who asked."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.targets: list[tuple[float, int]] = []
        self.holds: list[tuple[float, bool]] = []

    def fleet_view(self, now_s: float) -> FleetView:
        return FleetView.of(self.count)

    def apply_target(self, target: int, now_s: float) -> TargetEffect:
        self.targets.append((now_s, target))
        added = tuple(range(self.count, target))
        marked = tuple(range(self.count - 1, target - 1, -1))
        self.count = target
        return TargetEffect(added=added, cancelled=(), marked=marked)

    def hold(self, held: bool, now_s: float) -> None:
        self.holds.append((now_s, held))


class Script:
    """Answers one after the other, and keeps the times it was asked at."""

    def __init__(self, *answers: Decision | int | None) -> None:
        self.answers = list(answers)
        self.asked_s: list[float] = []

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision | int | None:
        self.asked_s.append(now_s)
        return self.answers.pop(0) if self.answers else None


def view(now_s: float) -> StaticView:
    return StaticView()


def run(scaler: PolicyRunner, fleet: PretendFleet, until_ms: float) -> list[object]:
    records: list[object] = []
    while scaler.next_ms <= until_ms:
        records.extend(scaler.run_due(scaler.next_ms, fleet))
    return records


def test_looks_are_multiples_of_the_period_never_sums() -> None:
    policy = Script()
    run(PolicyRunner([Loop("a", policy, 0.1)], [view]), PretendFleet(1), 100_000.0)
    assert policy.asked_s == [0.1 + k * 0.1 for k in range(len(policy.asked_s))]
    assert len(policy.asked_s) in (999, 1000)


def test_the_first_look_is_one_period_in_or_where_the_loop_says() -> None:
    early, late = Script(), Script()
    run(
        PolicyRunner([Loop("a", early, 15, first_at_s=0.0), Loop("b", late, 15)], [view, view]),
        PretendFleet(1),
        31_000,
    )
    assert early.asked_s == [0, 15, 30]
    assert late.asked_s == [15, 30]


def test_loops_due_together_run_in_their_order_on_what_the_one_before_left() -> None:
    fleet = PretendFleet(0)
    operator = Loop("operator", Script(1), 30, order=KEDA_OPERATOR)
    hpa = Loop("hpa", Script(None, 5), 15, order=HPA)
    records = run(PolicyRunner([hpa, operator], [view, view]), fleet, 30_000)
    assert fleet.targets == [(30.0, 1), (30.0, 5)]
    assert [(r.loop, r.current, r.target) for r in records] == [  # type: ignore[attr-defined]
        ("hpa", 0, 0),
        ("operator", 0, 1),
        ("hpa", 1, 5),
    ]


def test_a_decision_may_name_the_next_evaluation() -> None:
    policy = Script(Decision(2, next_at_s=7.5), Decision(3, next_at_s=math.inf))
    scaler = PolicyRunner([Loop("a", policy, 5)], [view])
    run(scaler, PretendFleet(1), 1e9)
    assert policy.asked_s == [5, 7.5]
    assert scaler.next_ms == math.inf


def test_only_changes_reach_the_fleet_and_every_look_is_recorded() -> None:
    fleet = PretendFleet(2)
    policy = Script(2, 3, None, 1)
    records = run(PolicyRunner([Loop("a", policy, 1)], [view], Bounds(2, 9)), fleet, 4_000)
    assert fleet.targets == [(2.0, 3), (4.0, 2)]
    rows = [record.as_row() for record in records]  # type: ignore[attr-defined]
    assert [row["target"] for row in rows] == [2, 3, 3, 2]
    assert rows[1]["added"] == (2,)
    assert rows[3]["marked"] == (2,) and rows[3]["reason"] == "raised to min"


def test_holding_requests_is_told_once() -> None:
    fleet = PretendFleet(1)
    policy = Script(Decision(None, hold=True), Decision(None, hold=True), Decision(None))
    run(PolicyRunner([Loop("a", policy, 1)], [view]), fleet, 3_000)
    assert fleet.holds == [(1.0, True), (3.0, False)]


def test_a_policy_tells_its_own_period_and_reads() -> None:
    (loop,) = loops_of(FixedPolicy(FixedScaling(count=3)), "fixed", 15)
    assert loop.start_s == 0
    assert reads_of(FixedPolicy(FixedScaling(count=3))) == ()
    assert reads_of(Script()) is None

    class Reads:
        reads = ("waiting", MetricQuery("kv_usage"))
        period_s = 7.0

    assert reads_of(Reads()) == (MetricQuery("waiting"), MetricQuery("kv_usage"))
    assert loops_of(Reads(), "it")[0].period_s == 7.0
    with pytest.raises(ValueError, match="longer than 0"):
        Loop("a", Script(), 0)


def test_after_a_long_sleep_of_its_own_a_loop_goes_on_in_its_grid_at_once() -> None:
    policy = Script(Decision(1, next_at_s=1e9 + 0.003), 1, 1)
    scaler = PolicyRunner([Loop("a", policy, 0.01)], [lambda now_s: StaticView()])
    fleet = PretendFleet(1)
    for _ in range(2):
        scaler.run_due(scaler.next_ms, fleet)
    assert scaler.next_ms == pytest.approx(1e12 + 10, abs=1e-3)
