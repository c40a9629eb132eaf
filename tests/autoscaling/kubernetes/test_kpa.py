"""Knative: settings, windows, panic, and the way to zero and back (`spec 10, 4.1 to 4.4`)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from dynamo_sim.autoscaling import (
    Decision,
    DecisionRecord,
    FleetView,
    KpaPolicy,
    KpaScaling,
    PolicyRunner,
    StaticView,
    TargetEffect,
)
from dynamo_sim.autoscaling.kubernetes.kpa.decider import Decider
from dynamo_sim.autoscaling.kubernetes.kpa.scaler import Scaler
from dynamo_sim.autoscaling.kubernetes.kpa.targets import capacity, panic_window_s, target_of
from dynamo_sim.autoscaling.kubernetes.kpa.window import BucketWindow


@pytest.mark.parametrize(
    ("settings", "total", "target"),
    [
        ({}, 100, 70),
        ({"container_concurrency": 8}, 8, 5.6),
        ({"container_concurrency": 8, "target": 20}, 8, 5.6),
        ({"container_concurrency": 8, "target": 4, "utilization": 1.0}, 4, 4),
        ({"target": 0.01, "utilization": 0.1}, 0.01, 0.01),
        ({"metric": "rps"}, 200, 140),
        ({"metric": "rps", "target": 100, "concurrency_utilization": 0.5}, 100, 70),
        ({"metric": "rps", "target": 100, "utilization": 0.5}, 100, 50),
        ({"target": 100, "concurrency_utilization": 0.5}, 100, 50),
        ({"metric": "rps", "container_concurrency": 8, "target": 20}, 20, 14),
    ],
)
def test_what_a_worker_takes_and_is_meant_to_have(
    settings: dict[str, float], total: float, target: float
) -> None:
    found = KpaScaling(**settings)  # type: ignore[arg-type]
    assert (capacity(found), target_of(found)) == (total, pytest.approx(target))


@pytest.mark.parametrize(("window", "percent", "seconds"), [(60, 10, 6), (6, 10, 1), (65, 10, 7), (40, 1, 1)])
def test_the_panic_window_is_whole_seconds(window: float, percent: float, seconds: int) -> None:
    assert panic_window_s(KpaScaling(window_s=window, panic_window_percentage=percent)) == seconds


@pytest.mark.parametrize(
    "settings",
    [
        {"metric": "cpu"},
        {"window_s": 0},
        {"utilization": 0},
        {"max_scale_up_rate": 1.0},
        {"min_scale": 5, "max_scale": 3},
        {"panic_threshold_percentage": 100},
        {"activation_scale": 0},
    ],
)
def test_settings_knative_refuses(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        KpaScaling(**settings)  # type: ignore[arg-type]


def plain_average(records: list[tuple[float, float]], n: int, now_s: float) -> float | None:
    """The rule of the averages, word by word, without a ring."""
    if not records:
        return None
    first = last = math.floor(records[0][0])
    kept: dict[int, float] = {}
    for at, value in records:
        second = math.floor(at)
        if second - last >= n:
            kept, first = {}, second
        last = max(last, second)
        kept[second] = kept.get(second, 0.0) + value
    d = math.floor(now_s) - last
    if d >= n:
        return 0.0
    d = max(d, 0)
    youngest = last - n + d
    divisor = min(last - first + 1, n - d)
    return sum(value for second, value in kept.items() if second > youngest) / divisor


def test_the_ring_agrees_with_the_plain_rule() -> None:
    chance = random.Random(5)
    for _ in range(300):
        n = chance.randint(1, 12)
        at, records = chance.uniform(0, 50), []
        window = BucketWindow(n)
        for _ in range(chance.randint(1, 40)):
            at += chance.choice([0.2, 1, 1, 1, 2.5, 7, 15])
            records.append((at, float(chance.randint(0, 9))))
            window.record(*records[-1])
            asked = at + chance.choice([0, 0, 0.5, 1, 4, 11, 30])
            assert window.average(asked) == pytest.approx(plain_average(records, n, asked), abs=1e-6)


def test_nothing_recorded_is_no_data() -> None:
    assert BucketWindow(6).average(100) is None
    window = BucketWindow(6)
    window.record(10, 1.0)
    window.record(3, 99.0)  # older than the window
    assert window.average(10) == 1.0


def test_panic_never_falls_and_ends_a_window_after_the_last_surge() -> None:
    decider = Decider.started(KpaScaling(target=10, utilization=1.0), 1, 0)
    assert decider.tick(0, 1, 100, 100).desired == 10
    assert decider.tick(30, 10, 60, 1).desired == 10
    assert decider.tick(60, 10, 60, 1).in_panic
    after = decider.tick(60.5, 10, 60, 1)
    assert (after.desired, after.in_panic) == (6, False)


def scaled(scaler: Scaler, want: int, now_s: float, ready: int, current: int | None = None) -> int | None:
    return scaler.target(want, now_s, ready, ready if current is None else current)[0]


def test_the_initial_scale_holds_until_it_was_reached_once() -> None:
    scaler = Scaler(KpaScaling(initial_scale=3, min_scale=1))
    assert scaled(scaler, 1, 0, 0, 3) == 3
    assert scaled(scaler, 1, 2, 2, 3) == 3
    assert scaled(scaler, 1, 4, 3) == 1


def test_from_n_to_zero_by_way_of_one_and_inactive() -> None:
    scaler = Scaler(KpaScaling(window_s=60))
    assert scaled(scaler, 4, 0, 4) == 4
    assert scaled(scaler, 0, 20, 4) == 1  # active for less than the window
    assert scaled(scaler, 0, 60, 1) is None and scaler.inactive
    assert scaled(scaler, 0, 88, 1) is None
    assert scaled(scaler, 0, 90, 1) == 0


def test_a_request_during_the_grace_period_makes_it_active_again() -> None:
    scaler = Scaler(KpaScaling(window_s=60))
    scaled(scaler, 1, 0, 1)
    assert scaled(scaler, 0, 60, 1) is None and scaler.inactive
    assert scaled(scaler, 1, 70, 1) == 1 and not scaler.inactive
    assert scaled(scaler, 0, 100, 1) == 1  # active since 70
    assert scaled(scaler, 0, 130, 1) is None


def test_without_scale_to_zero_one_worker_stays() -> None:
    scaler = Scaler(KpaScaling(enable_scale_to_zero=False))
    assert [scaled(scaler, 0, t, 1) for t in (0, 100, 1000)] == [1, 1, 1]
    bounded = Scaler(KpaScaling(min_scale=2, max_scale=5))
    assert [scaled(bounded, want, 0, 2) for want in (0, 9)] == [2, 5]


def test_with_the_activator_in_the_path_for_the_grace_period_it_goes_to_zero_after_three_seconds() -> None:
    scaler = Scaler(KpaScaling(window_s=60))
    assert scaler.target(1, 2, 1, 1, excess_burst_capacity=-111)[0] == 1
    assert scaler.target(0, 62, 1, 1, excess_burst_capacity=-111) == (None, "inactive")
    assert scaler.next_check_s == 65
    assert scaler.target(0, 65, 1, 1, excess_burst_capacity=-111) == (0, "scale to zero")


def test_without_a_burst_capacity_the_grace_period_counts_from_being_inactive() -> None:
    scaler = Scaler(KpaScaling(window_s=60, target_burst_capacity=0))
    scaled(scaler, 1, 2, 1)
    assert scaled(scaler, 0, 62, 1) is None
    assert scaler.next_check_s == 92
    assert scaled(scaler, 0, 92, 1) == 0


def test_the_last_worker_stays_for_its_retention_period() -> None:
    scaler = Scaler(KpaScaling(window_s=60, scale_to_zero_pod_retention_period_s=90))
    scaler.target(1, 2, 1, 1, excess_burst_capacity=-111)
    scaler.target(0, 62, 1, 1, excess_burst_capacity=-111)
    assert scaler.target(0, 65, 1, 1, excess_burst_capacity=-111) == (None, "inactive, grace period")
    assert scaler.next_check_s == 152
    assert scaler.target(0, 152, 1, 1, excess_burst_capacity=-111)[0] == 0


def test_while_the_first_worker_has_never_been_ready_nothing_changes() -> None:
    scaler = Scaler(KpaScaling())
    assert scaler.target(0, 2, 0, 3) == (None, "activating")
    assert scaler.target(0, 600, 0, 3) == (None, "activating")
    assert scaler.target(0, 631, 0, 3) == (0, "activation timed out")


def test_a_revision_is_active_from_the_moment_its_workers_are_ready() -> None:
    scaler = Scaler(KpaScaling(window_s=60))
    scaler.target(1, 2, 0, 1)
    assert scaler.target(0, 80, 1, 1, ready_since_s=20.5)[0] == 1
    assert scaler.next_check_s == 80.5


def run_kpa(
    policy: KpaPolicy, until_s: int, load: Callable[[float], float], ready: int = 1
) -> list[DecisionRecord]:
    """The decisions that change something, of a fleet that follows at once."""
    scaler = PolicyRunner(policy.loops, [lambda now_s: StaticView({"in_flight_s": load(now_s)})] * 2)
    fleet = PretendFleet(ready)
    records = []
    while scaler.next_ms <= until_s * 1000:
        records += scaler.run_due(scaler.next_ms, fleet)
    return [record for record in records if record.current != record.target]


class PretendFleet:
    """A fleet that scales at once."""

    def __init__(self, count: int) -> None:
        self.count = count

    def fleet_view(self, now_s: float) -> FleetView:
        return FleetView.of(self.count)

    def apply_target(self, target: int, now_s: float) -> TargetEffect:
        self.count = target
        return TargetEffect((), (), ())

    def hold(self, held: bool, now_s: float) -> None:
        raise AssertionError("Knative never holds requests back from a worker that is ready")


def test_from_the_last_request_to_zero_takes_a_window_and_three_seconds() -> None:
    records = run_kpa(KpaPolicy(KpaScaling(target=10)), 400, lambda now_s: 1.0 if now_s <= 120 else 0.0)
    assert [(record.at_s, record.target) for record in records] == [(183.0, 0)]


def test_a_request_at_zero_pokes_the_autoscaler() -> None:
    policy = KpaPolicy(KpaScaling(target=1, window_s=6))
    view = StaticView()
    scrape, tick = policy.loops
    empty = FleetView.of(0)
    scrape.policy.decide(1, StaticView({"in_flight_s": 0.0}), FleetView.of(1))
    tick.policy.decide(2, view, FleetView.of(1))
    assert tick.policy.request_waits(3.25) == 3.35
    assert tick.policy.request_waits(3.3) == 3.35
    decision = tick.policy.decide(3.35, view, empty)
    assert isinstance(decision, Decision) and decision.target == 2
    assert decision.values["panic"] == 1.0  # one request is more than 0.7
    assert tick.policy.request_waits(3.4) is None  # it knows


def test_a_first_request_after_a_silence_is_seen_as_one_request() -> None:
    """At zero nothing is recorded, so the windows are empty when it comes."""
    policy = KpaPolicy(KpaScaling(target=10, window_s=20))
    scrape, tick = policy.loops
    scrape.policy.decide(1, StaticView({"in_flight_s": 5.0}), FleetView.of(1))
    for second in range(2, 60):
        scrape.policy.decide(second, StaticView(), FleetView.of(0))
    tick.policy.decide(60, StaticView(), FleetView.of(0))
    tick.policy.request_waits(60.5)
    decision = tick.policy.decide(60.6, StaticView(), FleetView.of(0))
    assert isinstance(decision, Decision) and decision.values["stable"] == 1.0


def test_the_policy_scrapes_every_second_and_ticks_every_two() -> None:
    policy = KpaPolicy(KpaScaling(target=10, utilization=1.0))
    scrape, tick = policy.loops
    assert (scrape.period_s, tick.period_s) == (1, 2)
    fleet = FleetView.of(1)
    view = StaticView({"in_flight_s": 25.0, "router_queue_s": 5.0})
    assert tick.policy.decide(0, view, fleet) == Decision(
        None, "no data", values={"stable": None, "panic": None, "target": 10.0}
    )
    scrape.policy.decide(1, view, fleet)
    decision = tick.policy.decide(2, view, fleet)
    assert isinstance(decision, Decision)
    assert (decision.target, decision.reason) == (3, "panic")
    assert decision.values["stable"] == 30.0


def test_requests_per_second_count_starts_and_what_waits() -> None:
    policy = KpaPolicy(KpaScaling(metric="rps", target=10, utilization=1.0))
    scrape, tick = policy.loops
    scrape.policy.decide(1, StaticView({"requests_started": 12.0, "router_queue": 4.0}), FleetView.of(2))
    decision = tick.policy.decide(2, StaticView(), FleetView.of(2))
    assert isinstance(decision, Decision) and decision.target == 2


def test_the_reason_names_what_limits_the_desired_number() -> None:
    def limits(*averages: tuple[float, int, float, float], **settings: float) -> list[str]:
        decider = Decider(KpaScaling(target=10, utilization=1.0, **settings))  # type: ignore[arg-type]
        return [decider.tick(now_s, ready, stable, panic).limit for now_s, ready, stable, panic in averages]

    assert limits((0, 1, 15, 15)) == [""]
    assert limits((0, 1, 150, 150), max_scale_up_rate=2) == ["max scale-up rate"]
    assert limits((0, 8, 10, 10)) == ["max scale-down rate"]
    assert limits((0, 1, 1, 1), activation_scale=3) == ["activation scale"]
    assert limits((0, 1, 100, 100), (2, 10, 60, 1)) == ["", "no scale-down in panic"]
    assert limits((0, 4, 40, 40), (2, 4, 30, 30), scale_down_delay_s=60) == ["", "scale-down delay"]


def test_a_decision_says_what_limits_it() -> None:
    policy = KpaPolicy(KpaScaling(target=10, utilization=1.0, max_scale_up_rate=2))
    scrape, tick = policy.loops
    scrape.policy.decide(1, StaticView({"in_flight_s": 90.0}), FleetView.of(2))
    decision = tick.policy.decide(2, StaticView(), FleetView.of(2))
    assert isinstance(decision, Decision) and (decision.target, decision.reason) == (
        4,
        "panic, max scale-up rate",
    )
