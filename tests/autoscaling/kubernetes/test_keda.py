"""KEDA: the operator's way from zero and back, fallback, cached values, cron, and formulas (`spec 10, 3.1 to 3.5`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dynamo_sim.autoscaling import (
    Decision,
    FallbackSpec,
    FleetView,
    HpaMetric,
    KedaPolicy,
    MetricQuery,
    ScaledObjectKeys,
    ScaledObjectSpec,
    StaticView,
    unreachable_targets,
)
from dynamo_sim.autoscaling.kubernetes.keda import MetricTrigger, Modifiers
from dynamo_sim.autoscaling.kubernetes.keda.formula import Formula
from dynamo_sim.autoscaling.kubernetes.keda.formula_check import misread_names, shared_names
from dynamo_sim.autoscaling.kubernetes.keda.operator import OperatorState, operator_target
from dynamo_sim.autoscaling.kubernetes.keda.spec import CronTrigger, ResourceTrigger
from dynamo_sim.cron import CronWindow

WAITING = MetricQuery("waiting", reduce="sum")
RUNNING = MetricQuery("running", reduce="sum")


def trigger(query: MetricQuery = WAITING, threshold: int = 10, **more: Any) -> MetricTrigger:
    return MetricTrigger(query, threshold * 1000, **more)


def keda(*triggers: MetricTrigger, **more: Any) -> KedaPolicy:
    modifiers = more.pop("modifiers", None)
    return KedaPolicy(ScaledObjectSpec(triggers or (trigger(),), ScaledObjectKeys(**more), modifiers))


def fallback(failure_threshold: int, replicas: int, behavior: Any = "static") -> FallbackSpec:
    return FallbackSpec(failure_threshold=failure_threshold, replicas=replicas, behavior=behavior)


def poll(policy: KedaPolicy, now_s: float, count: int, **values: float | None) -> Decision:
    return policy.operator.decide(now_s, StaticView(values), FleetView.of(count))


def sync(policy: KedaPolicy, now_s: float, count: int, **values: float | None) -> Decision:
    return policy.hpa.decide(now_s, StaticView(values), FleetView.of(count))


def test_activity_is_strictly_above_the_activation_threshold() -> None:
    policy = keda(trigger(activation=5.0))
    assert poll(policy, 30, 0, waiting=5).target is None
    assert poll(policy, 60, 0, waiting=5.001) == Decision(1, "activated", values={"trigger 0": 5.001})


def test_the_drop_to_zero_comes_from_any_size_past_the_down_policy() -> None:
    policy = keda(cooldown_s=60)
    assert poll(policy, 30, 5, waiting=40).reason == "active"
    assert poll(policy, 90, 5, waiting=0).reason == "cooling down"  # strictly more than 60 s
    assert poll(policy, 91, 5, waiting=0).target == 0


def test_a_fleet_that_was_never_active_goes_to_zero_at_the_first_poll() -> None:
    assert poll(keda(), 30, 3, waiting=0).target == 0
    assert poll(keda(initial_cooldown_s=30), 30, 3, waiting=0).target is None


def test_the_cooldown_does_nothing_from_n_to_one() -> None:
    policy = keda(min_replicas=1, cooldown_s=10_000)
    assert poll(policy, 30, 5, waiting=0).reason == "inactive"
    for k in range(25):
        last = sync(policy, 15.0 * k, 5, waiting=0)
    assert last.target == 1  # after the HPA's own 300 s


@pytest.mark.parametrize(
    ("spec", "current", "active", "error", "target", "reason"),
    [
        ({"min_replicas": 2, "idle_replicas": 0}, 0, True, False, 2, "activated"),
        ({"min_replicas": 2, "idle_replicas": 0}, 5, False, False, 0, "cooled down"),
        ({"min_replicas": 2, "idle_replicas": 0}, 1, True, False, 2, "activated"),
        ({"min_replicas": 2}, 1, False, False, 2, "below min"),
        ({"min_replicas": 2}, 0, True, False, 2, "activated"),
        ({}, 4, False, True, None, "trigger failed"),
        ({"fallback": fallback(3, 6)}, 4, False, True, None, "trigger failed, fallback"),
        ({"fallback": fallback(3, 0)}, 4, False, True, 0, "cooled down"),
        ({}, 4, True, True, None, "active"),
        ({}, 0, True, True, 1, "activated"),
    ],
)
def test_the_first_rule_that_fits(
    spec: dict[str, Any], current: int, active: bool, error: bool, target: int | None, reason: str
) -> None:
    state = OperatorState()
    assert operator_target(ScaledObjectKeys(**spec), state, current, active, error, 1000.0) == (
        target,
        reason,
    )
    noted = active and (not error or current == 0)
    assert state.last_active_s == (1000.0 if noted else None)


def test_a_failing_trigger_falls_back_after_its_threshold_and_recovers() -> None:
    policy = keda(trigger(ignore_null=False), fallback=fallback(2, 6), min_replicas=1)
    assert sync(policy, 0, 3, waiting=None).reason == "no metric"
    assert sync(policy, 15, 3, waiting=None).reason == "no metric"
    fallen = sync(policy, 30, 3, waiting=None)
    assert (fallen.target, fallen.values) == (6, {"trigger 0": 60.0})
    assert sync(policy, 45, 6, waiting=60).target == 6
    assert sync(policy, 60, 6, waiting=None).reason == "no metric"


@pytest.mark.parametrize(
    ("behavior", "replicas"),
    [("static", 4), ("currentReplicas", 6), ("currentReplicasIfHigher", 6), ("currentReplicasIfLower", 4)],
)
def test_fallback_behaviours(behavior: str, replicas: int) -> None:
    policy = keda(trigger(ignore_null=False), fallback=fallback(0, 4, behavior), min_replicas=1)
    assert sync(policy, 0, 6, waiting=None).desired == replicas


def test_fallback_of_a_value_target_is_divided_by_the_ready_workers() -> None:
    policy = keda(trigger(ignore_null=False, metric_type="Value"), fallback=fallback(0, 6), min_replicas=1)
    fleet = FleetView.of(4, starting=1)
    assert policy.hpa.decide(0, StaticView(), fleet).desired == 6
    assert policy.hpa.decide(15, StaticView(), FleetView.of(0, starting=2)).reason == "no metric"


def test_a_query_with_a_series_a_worker_fails_with_several_workers() -> None:
    policy = keda(trigger(MetricQuery("waiting"), one_series=False), min_replicas=1)

    def synced(now_s: float, samples: dict[int, float]) -> Decision:
        view = StaticView(samples={"waiting": samples})
        return policy.hpa.decide(now_s, view, FleetView.of(max(1, len(samples))))

    assert synced(0, {0: 30.0}).desired == 3
    failed = synced(15, {0: 30.0, 1: 20.0})
    assert failed.reason == "no metric" and "gives 2 series, and KEDA takes only one" in failed.events[0]
    assert synced(30, {}).desired == 0


def test_no_data_counts_as_zero_unless_told_otherwise() -> None:
    assert sync(keda(min_replicas=1), 0, 4, waiting=None).desired == 0


def test_a_cached_trigger_gives_the_hpa_the_value_of_the_last_poll() -> None:
    policy = keda(trigger(use_cached=True), min_replicas=1)
    poll(policy, 30, 2, waiting=20)
    assert sync(policy, 30, 2, waiting=999).desired == 2
    poll(policy, 60, 2, waiting=999)
    assert sync(policy, 60, 2, waiting=0).desired == 100


def test_a_formula_replaces_the_triggers() -> None:
    formula = Modifiers(Formula("busy > 5 ? max(queue, busy) : queue / 2"), 4000, activation=2.0)
    policy = keda(trigger(name="queue"), trigger(RUNNING, name="busy"), min_replicas=1, modifiers=formula)
    assert sync(policy, 0, 1, waiting=3, running=12).desired == 3
    assert sync(policy, 15, 1, waiting=4, running=1).desired == 1
    asleep = keda(trigger(name="queue"), trigger(RUNNING, name="busy"), modifiers=formula)
    assert poll(asleep, 30, 0, waiting=4, running=5).target is None  # 2 is not above 2
    assert poll(asleep, 60, 0, waiting=5, running=5).target == 1


def test_both_loops_and_what_they_read() -> None:
    policy = keda(trigger(), trigger(RUNNING), polling_interval_s=20)
    assert [(loop.name, loop.period_s) for loop in policy.loops] == [("keda-operator", 20), ("keda-hpa", 15)]
    assert policy.reads == (WAITING, RUNNING)
    assert policy.hpa.spec.min_replicas == 1  # whatever the ScaledObject's own minimum


class TestCronTrigger:
    cronsim = pytest.importorskip("cronsim")

    def test_a_cron_trigger_wakes_the_fleet_and_wants_its_replicas(self) -> None:
        from dynamo_sim.autoscaling.kubernetes.keda import CronTrigger
        from dynamo_sim.cron import CronWindow

        policy = KedaPolicy(
            ScaledObjectSpec(
                (CronTrigger(CronWindow("0 1 * * *", "0 2 * * *"), 4),), ScaledObjectKeys(cooldown_s=60)
            )
        )
        assert poll(policy, 3570, 0).target is None
        assert poll(policy, 3600, 0).target == 1
        assert sync(policy, 3600, 1).target == 4
        assert poll(policy, 7200, 4).reason == "cooled down"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + b * 2", 11.0),
        ("(a + b) * 2 - -1", 15.0),
        ("-a ** 2", -9.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("a % 2 + a / 2", 2.5),
        ("a >= 3 ? b : 0", 4.0),
        ("a == b ? 1 : a < b ? 2 : 3", 2.0),
        ("sum([a, b, 1]) + avg([a, b])", 11.5),
        ("ceil(a / 2) + floor(b / 3) + abs(-1)", 4.0),
        ("min(a, b, 1e1) + max(a, .5)", 6.0),
        ("max([a, b]) - min([a, b])", 1.0),
        ("round(2.5) + round(-2.5) + int(a / 2)", 1.0),
        ("a > 1 && b > 1 ? 2 : 0", 2.0),
        ("a > 9 || not (b > 9) ? 3 : 0", 3.0),
        ("a > 9 or b > 9 and a > 1 ? 3 : 0", 0.0),
        ("count([a, b, 1], {# > 1})", 2.0),
        ("count([a, b, 1], # >= 1) > 2 ? 5 : 0", 5.0),
        ("count([a > 3, b > 3])", 1.0),
        ("any([a, b], {# > 3}) && all([a, b], {# > 2}) && one([a, b], # > 3) ? 7 : 0", 7.0),
        ("mean([a, b]) + median([a, b, 9]) + len([a, b])", 9.5),
        ("a ?? 5", 3.0),
        ("a ?? 5 + b", 7.0),
    ],
)
def test_formulas(text: str, value: float) -> None:
    assert Formula(text)({"a": 3.0, "b": 4.0}) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a +", "ends too early"),
        ("a b", "unexpected 'b'"),
        ("a > 1", "not a number"),
        ("a ? 1 : 2", "must be a comparison"),
        ("(a > 1) + 2", "a number is needed"),
        ("count([a])", "takes a list and a condition"),
        ("count([a], # + 1)", "a condition is needed"),
        ("filter([a], # > 1)", "filter is not supported"),
        ("# > 1 ? 1 : 2", "stands for an element"),
        ("a and b", "a condition is needed"),
        ("a > 1 && b > 1", "not a number"),
        ("not a > 1 ? 1 : 2", "a condition is needed"),
        ("1 < a < 2 ? 1 : 2", "join them by &&"),
        ("a in [1]", "unexpected 'in'"),
        ("'text'", "is not supported"),
        ("sum(a)", "takes a list"),
        ("min(a)", "at least two"),
        ("[a]", "not a number"),
        ("a > 1 ? b : (a > 2)", "one kind"),
        ("(a", r"expected '\)' at the end"),
        ("", "ends too early"),
    ],
)
def test_formulas_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Formula(text)


def test_a_division_by_zero_is_an_error_of_the_metric() -> None:
    with pytest.raises(ValueError, match="division by zero"):
        Formula("1 / a")({"a": 0.0})
    policy = keda(trigger(name="queue"), min_replicas=1, modifiers=Modifiers(Formula("1 / queue"), 1000))
    assert sync(policy, 0, 2, waiting=0).reason == "no metric"


# ---------------------------------------------------------------- both loops over time


def changes(
    policy: KedaPolicy, count: int, until_s: int, **values: Callable[[float], float | None]
) -> list[tuple[float, str, int, int]]:
    """(time, loop, from, to) of every change of a fleet whose workers are ready at once."""
    found = []
    for now_s in range(0, until_s + 1, 15):
        view = StaticView({name: value(now_s) for name, value in values.items()})
        for loop in policy.loops:
            if now_s >= loop.start_s and (now_s - loop.start_s) % loop.period_s == 0:
                decision = loop.policy.decide(now_s, view, FleetView.of(count))
                assert isinstance(decision, Decision)
                if decision.target not in (None, count):
                    assert decision.target is not None
                    found.append((float(now_s), loop.name.removeprefix("keda-"), count, decision.target))
                    count = decision.target
    return found


def outage(from_s: float, value: float = 5.0) -> Callable[[float], float | None]:
    return lambda now_s: None if now_s >= from_s else value


def test_the_first_poll_is_at_the_creation_and_the_first_sync_a_period_later() -> None:
    policy = keda()
    assert [loop.start_s for loop in policy.loops] == [0.0, 15.0]
    assert changes(policy, 0, 30, waiting=lambda now_s: 25.0) == [
        (0.0, "operator", 0, 1),
        (15.0, "hpa", 1, 3),
    ]


def test_polls_and_reads_of_the_hpa_count_failures_alike() -> None:
    """The fourth failure of a threshold of three: 105, 120 (poll and read), 135 s."""
    policy = keda(trigger(ignore_null=False), fallback=fallback(3, 6), min_replicas=1)
    assert changes(policy, 1, 200, waiting=outage(100)) == [(135.0, "hpa", 1, 4), (150.0, "hpa", 4, 6)]


def test_a_fallback_wakes_the_fleet_from_zero_and_keeps_it_awake() -> None:
    policy = keda(trigger(ignore_null=False), fallback=fallback(3, 2), cooldown_s=60)
    found = changes(policy, 0, 600, waiting=lambda now_s: None)
    assert [(loop, after) for _, loop, _, after in found] == [("operator", 1), ("hpa", 2)]


def test_a_fallback_brings_a_fleet_at_zero_back_above_its_minimum() -> None:
    policy = keda(trigger(ignore_null=False), fallback=fallback(3, 2), min_replicas=1)
    assert changes(policy, 0, 300, waiting=outage(0))[-1][2:] == (1, 2)


def test_a_cron_trigger_is_zero_outside_its_window() -> None:
    office = CronTrigger(CronWindow("0 8 * * *", "0 18 * * *"), 2, "office")
    policy = keda(
        trigger(name="queue"),
        office,  # type: ignore[arg-type]
        min_replicas=1,
        modifiers=Modifiers(Formula("office + queue"), 1000),
    )
    assert sync(policy, 0, 1, waiting=3).desired == 3
    assert sync(policy, 9 * 3600, 1, waiting=3).desired == 5


def test_with_a_formula_any_failing_trigger_makes_the_object_inactive() -> None:
    policy = keda(
        trigger(name="queue"),
        trigger(RUNNING, name="aside", ignore_null=False),
        modifiers=Modifiers(Formula("queue"), 1000),
    )
    assert poll(policy, 30, 0, waiting=9, running=1).target == 1
    assert poll(policy, 60, 0, waiting=9, running=None).target is None


def test_values_and_composites_are_cut_to_thousandths() -> None:
    policy = keda(trigger(name="queue"), modifiers=Modifiers(Formula("queue / 3"), 1, activation=0.333))
    assert sync(policy, 15, 1, waiting=1).values == {"queue / 3": 0.333}
    assert not poll(policy, 30, 0, waiting=1).target  # 0.3333... is above 0.333, 0.333 is not


class TestFallbackOfTheFormula:
    """``fallback.behavior: scalingModifiers``: a failed trigger is nil in the formula."""

    @staticmethod
    def policy(formula: str) -> KedaPolicy:
        return keda(
            trigger(name="queue", ignore_null=False),
            trigger(RUNNING, name="running", ignore_null=False),
            min_replicas=1,
            fallback=fallback(1, 7, "scalingModifiers"),
            modifiers=Modifiers(Formula(formula), 2000),
        )

    def failed(self, formula: str, running: float | None) -> Decision:
        policy = self.policy(formula)
        assert sync(policy, 0, 3, waiting=None, running=running).reason == "no metric"
        return sync(policy, 15, 3, waiting=None, running=running)

    def test_another_trigger_takes_its_place(self) -> None:
        assert self.failed("queue ?? running", 10.0).desired == 5

    def test_a_number_takes_its_place(self) -> None:
        assert self.failed("queue ?? running ?? 8", None).desired == 4

    def test_where_nothing_is_left_the_replicas_of_the_fallback_count(self) -> None:
        assert self.failed("queue ?? running", None).desired == 7

    def test_a_formula_that_calculates_with_it_fails(self) -> None:
        assert self.failed("queue + running", 10.0).reason == "no metric"


def test_with_a_formula_a_fallback_needs_a_whole_number_for_a_target() -> None:
    def fallen(target_milli: int) -> str:
        modifiers = Modifiers(Formula("queue"), target_milli)
        policy = keda(
            trigger(name="queue", ignore_null=False),
            min_replicas=1,
            fallback=fallback(0, 4),
            modifiers=modifiers,
        )
        return sync(policy, 0, 3, waiting=None).reason

    assert fallen(2000) != "no metric"
    assert fallen(2500) == "no metric"


def test_a_cached_fallback_counts_as_a_good_read() -> None:
    policy = keda(trigger(use_cached=True, ignore_null=False), min_replicas=1, fallback=fallback(1, 4))
    poll(policy, 0, 2, waiting=None)
    assert poll(policy, 30, 2, waiting=None).reason == "active"
    assert sync(policy, 30, 2, waiting=None).desired == 4
    assert poll(policy, 60, 2, waiting=None).reason == "trigger failed, fallback"  # counted from 1 again


# ---------------------------------------------------------------- formulas that are doubtful


A = MetricTrigger(MetricQuery("waiting", reduce="sum"), 5000, name="a")
B = MetricTrigger(MetricQuery("kv_usage"), 5000, name="b")
CRON = CronTrigger(CronWindow("0 8 * * *", "0 9 * * *", "UTC"), 4, "cron")
CPU = ResourceTrigger(HpaMetric("Resource", "Utilization", 50, MetricQuery("busy"), "cpu"), "cpu")


@pytest.mark.parametrize(
    ("text", "triggers", "said"),
    [
        ("7", (A,), ["'7' reads no trigger"]),
        ("1 / 0", (A,), ["reads no trigger", "can fail (float division by zero)"]),
        ("a", (A, B), ["does not read b"]),
        ("a - 3", (A,), ["can be negative (-3 with a = 0): that counts as 0"]),
        ("b - 0.8", (B,), ["can be negative (-0.8 with b = 0)"]),
        ("a / b", (A, B), ["can fail (float division by zero with a = 0 and b = 0)"]),
        ("cron - 2", (CRON,), ["can be negative (-2 with cron = 0)"]),
        ("max(cron - 1, 0)", (CRON,), []),
        ("1 - b", (B,), []),  # a cache is never more than full
        ("max(a - 3, 0)", (A,), []),
        ("a ** 99999", (A,), ["can fail (Numerical result out of range with a = 1000)"]),
        ("a % 0", (A,), ["can fail (math domain error with a = 0)"]),
    ],
)
def test_a_formula_is_tried_at_the_ends_of_its_triggers(
    text: str, triggers: tuple[Any, ...], said: list[str]
) -> None:
    spec = ScaledObjectSpec(triggers, modifiers=Modifiers(Formula(text), 5000))
    found = unreachable_targets(KedaPolicy(spec))
    assert len(found) == len(said)
    assert all(words in line for words, line in zip(said, found, strict=True))


def test_names_without_a_value_are_reported() -> None:
    assert misread_names(Formula("a + x + cpu"), (A, CPU)) == [
        "there is no trigger named 'x'; there are a",
        "'cpu' is a trigger on a resource, which has no value for a formula",
    ]
    assert shared_names((A, B, A)) == ["a"]


def test_a_trigger_active_below_nothing_is_active_for_ever() -> None:
    always = MetricTrigger(MetricQuery("waiting", reduce="sum"), 5000, activation=-1.0)
    (line,) = unreachable_targets(KedaPolicy(ScaledObjectSpec((always,))))
    assert "with the activation threshold -1 it is active for ever" in line


def test_a_failed_trigger_is_replaced_or_an_error() -> None:
    assert Formula("a ?? b ?? 5")({"a": None, "b": 4.0}) == 4.0
    assert Formula("a ?? b ?? 5")({"a": None, "b": None}) == 5.0
    assert Formula("a ?? b")({"a": None, "b": None}) is None
    with pytest.raises(ValueError, match="calculates with a trigger that has failed"):
        Formula("a + b")({"a": None, "b": 4.0})


@pytest.mark.parametrize(
    "text",
    ["(" * 150, "(" * 90 + "a" + ")" * 90, "-" * 199 + "a", "a?" * 66 + "a", "2^" * 99 + "2", "[" * 150],
)
def test_a_deeply_nested_formula_is_parsed_or_refused(text: str) -> None:
    try:
        Formula(text)
    except ValueError as error:
        assert "nested too deeply" in str(error) or "'?'" in str(error)


@pytest.mark.parametrize(
    "text", ["ceil(9) ^ ceil(9) ^ ceil(9)", "a + ceil(10) ^ ceil(1e7)", "floor(9)**1e300"]
)
def test_powers_are_floats_and_end_at_once(text: str) -> None:
    with pytest.raises(ValueError, match=r"out of range|result is inf"):
        Formula(text)({"a": 1.0})


@pytest.mark.parametrize("text", ["(" * 5000 + "a" + ")" * 5000, "-" * 5000 + "a", "a+" * 5000 + "a"])
def test_an_endless_formula_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^formula .{1,80}: it has more than 200 parts$"):
        Formula(text)
