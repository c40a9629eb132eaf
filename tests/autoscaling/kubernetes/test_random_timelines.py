"""The HPA and Knative's decider against plain transcriptions of the real controllers, over random timelines.

The suite runs a sample; `DYNAMO_SIM_TIMELINES=2000` runs as many of each.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from dynamo_sim.autoscaling import (
    FleetView,
    HpaFlags,
    HpaMetric,
    HpaPolicy,
    HpaSpec,
    KpaScaling,
    MetricQuery,
    Sample,
    WorkerPhase,
    WorkerView,
)
from dynamo_sim.autoscaling.kubernetes.kpa.decider import Decider
from dynamo_sim.autoscaling.kubernetes.kpa.targets import target_of
from dynamo_sim.autoscaling.kubernetes.kpa.window import BucketWindow
from dynamo_sim.scenario.autoscaler.behavior import BehaviorSpec, DirectionSpec, RuleSpec
from tests.autoscaling.kubernetes.plain_hpa import PlainHpa, PlainMetric, PlainPod
from tests.autoscaling.kubernetes.plain_kpa import PlainKpa

TIMELINES = int(os.environ.get("DYNAMO_SIM_TIMELINES", "40"))
SYNCS = 59

NAMES = ("waiting", "running", "kv_usage")


@dataclass
class World:
    """A fleet that follows the targets with random delays, and a load that wanders."""

    chance: random.Random
    workers: dict[int, WorkerView] = field(default_factory=dict)
    changes: list[tuple[float, int, WorkerPhase | None]] = field(default_factory=list)
    next_id: int = 0

    def add(self, now: float, count: int) -> None:
        for _ in range(count):
            worker, self.next_id = self.next_id, self.next_id + 1
            self.workers[worker] = WorkerView(worker, WorkerPhase.PULLING, now)
            loading = now + self.chance.choice([0, 10, 40, 200])
            ready = loading + self.chance.choice([5, 20, 60])
            self.changes += [(loading, worker, WorkerPhase.LOADING), (ready, worker, WorkerPhase.READY)]
            if self.chance.random() < 0.03:
                self.changes.append((ready + 30, worker, WorkerPhase.FAILED))

    def scale(self, now: float, target: int) -> None:
        staying = [w for w in self.workers.values() if w.is_ready or w.phase.is_starting]
        self.add(now, target - len(staying))
        for view in sorted(staying, key=lambda w: (w.is_ready, -w.id))[: max(0, len(staying) - target)]:
            if view.is_ready:
                self.workers[view.id] = WorkerView(
                    view.id, WorkerPhase.DRAINING, view.created_s, view.ready_since_s
                )
                self.changes.append((now + self.chance.choice([5, 100, 400]), view.id, None))
            else:
                del self.workers[view.id]

    def advance(self, now: float) -> None:
        due = sorted((change for change in self.changes if change[0] <= now), key=lambda change: change[0])
        self.changes = [change for change in self.changes if change[0] > now]
        for at, worker, phase in due:
            view = self.workers.get(worker)
            if view is None or (view.phase is WorkerPhase.DRAINING and phase is not None):
                continue
            if phase is None:
                del self.workers[worker]
            else:
                ready = at if phase is WorkerPhase.READY else view.ready_since_s
                self.workers[worker] = WorkerView(worker, phase, view.created_s, ready)

    @property
    def fleet(self) -> FleetView:
        return FleetView(tuple(self.workers[worker] for worker in sorted(self.workers)))


class WorldView:
    """What is visible at one sync: totals or samples by metric."""

    def __init__(
        self, totals: Mapping[str, float | None], samples: Mapping[str, Mapping[int, Sample]]
    ) -> None:
        self.totals, self.samples = totals, samples

    def value(self, query: MetricQuery | str) -> float | None:
        return self.totals.get(MetricQuery.of(query).metric)

    def per_worker(self, query: MetricQuery | str) -> Mapping[int, Sample]:
        return self.samples.get(MetricQuery.of(query).metric, {})

    def bridge(self) -> Mapping[str, Any]:
        return {}


def random_behavior(chance: random.Random) -> tuple[BehaviorSpec, dict[str, Any]]:
    directions, plain = {}, {}
    for name in ("up", "down"):
        rules = tuple(
            RuleSpec(
                type=chance.choice(["Pods", "Percent"]),
                value=chance.choice([1, 3, 10, 50, 100, 300]),
                period_s=period,
            )
            for period in chance.sample([15.0, 30.0, 60.0, 200.0], chance.randint(1, 3))
        )
        select = chance.choice(["Max", "Max", "Min", "Disabled"])
        window = float(chance.choice([0, 0, 30, 60, 300]))
        tolerance = chance.choice([None, 0.0, 0.05, 0.3])
        directions[f"scale_{name}"] = DirectionSpec(
            rules=rules, select=select, stabilization_window_s=window, tolerance=tolerance
        )
        plain[name] = {
            "policies": [(rule.type, rule.value, rule.period_s) for rule in rules],
            "select": select,
            "window": window,
            "tolerance": tolerance,
        }
    return BehaviorSpec(**directions), plain


def random_metrics(chance: random.Random) -> list[tuple[HpaMetric, PlainMetric]]:
    found = []
    for name in NAMES[: chance.choice([1, 1, 2, 3])]:
        kind = chance.choice(["Pods", "cpu", "memory", "External", "External"])
        types = {"Pods": ["AverageValue"], "External": ["AverageValue", "Value"]}
        target_type = chance.choice(types.get(kind, ["Utilization", "AverageValue"]))
        target = (
            chance.choice([30, 70, 150]) if target_type == "Utilization" else chance.choice([500, 3000, 7500])
        )
        query = MetricQuery(name, reduce="sum" if kind == "External" else None)
        source = kind if kind in ("Pods", "External") else "Resource"
        found.append(
            (HpaMetric(source, target_type, target, query, kind), PlainMetric(kind, target_type, target))
        )
    return found


def pods(fleet: FleetView) -> list[PlainPod]:
    """What a cluster shows of the workers."""
    found = []
    for w in fleet.workers:
        phase = {WorkerPhase.PULLING: "Pending", WorkerPhase.FAILED: "Failed"}.get(w.phase, "Running")
        ready = w.phase in (WorkerPhase.READY, WorkerPhase.DRAINING)
        since = w.ready_since_s if ready and w.ready_since_s is not None else w.created_s
        found.append(PlainPod(w.id, phase, w.phase is WorkerPhase.DRAINING, ready, since, w.created_s))
    return found


@pytest.mark.parametrize("seed", range(TIMELINES))
def test_the_hpa_decides_as_its_controller(seed: int) -> None:
    chance = random.Random(seed)
    behavior, plain = random_behavior(chance) if chance.random() < 0.6 else (None, None)
    minimum = chance.choice([1, 1, 2, 4])
    maximum = minimum + chance.choice([0, 3, 10, 40])
    metrics = random_metrics(chance)
    flags = HpaFlags(
        tolerance=chance.choice([0.1, 0.0]), cpu_initialization_period_s=chance.choice([0, 60, 300])
    )
    policy = HpaPolicy(HpaSpec(maximum, minimum, tuple(metric for metric, _ in metrics), behavior), flags)
    tolerances = {
        name: flags.tolerance
        if plain is None or plain[name]["tolerance"] is None
        else plain[name]["tolerance"]
        for name in ("up", "down")
    }
    twin = PlainHpa(minimum, maximum, plain, tolerances["up"], tolerances["down"])
    twin.cpu_initialization = flags.cpu_initialization_period_s
    world = World(chance)
    world.add(0.0, chance.choice([0, 1, 3, 6]))
    load = chance.uniform(0, 20)
    for sync in range(SYNCS):
        now = 15.0 * (sync + 1)
        world.advance(now)
        fleet = world.fleet
        load = max(0.0, load + chance.choice([0, 0, 0, -1, 1, 5, -5, 30, -30]) * chance.random())
        totals, samples = {}, {}
        for name, (_, twin_metric) in zip(NAMES, metrics, strict=False):
            running = [w for w in fleet.workers if w.phase not in (WorkerPhase.PULLING, WorkerPhase.FAILED)]
            seen = [w for w in running if w.ready_since_s is not None and chance.random() < 0.95]
            taken, over = now - chance.choice([0, 5, 14]), chance.choice([0.0, 15.0])
            fails = chance.random() < 0.06
            shares = {w.id: round(load / max(1, len(seen)) * chance.uniform(0.6, 1.4), 3) for w in seen}
            totals[name] = None if fails else round(load, 3)
            samples[name] = {} if fails else {i: Sample(value, taken, over) for i, value in shares.items()}
            twin_metric.total = None if fails else round(load * 1000)
            twin_metric.samples = (
                {} if fails else {i: (round(v * 1000), taken, over) for i, v in shares.items()}
            )
        current = fleet.effective
        expected = twin.reconcile(now, current, pods(fleet), [metric for _, metric in metrics])
        decision = policy.decide(now, WorldView(totals, samples), fleet)
        assert decision.target == expected, f"at {now:g} s with {current} replicas"
        world.scale(now, expected)


@pytest.mark.parametrize("seed", range(TIMELINES))
def test_knative_s_decider_decides_as_its_autoscaler(seed: int) -> None:
    chance = random.Random(seed)
    total = chance.choice([0.5, 1.0, 10.0, 100.0])
    window = float(chance.choice([6, 20, 60]))
    spec = KpaScaling(
        target=total,
        utilization=chance.choice([0.5, 0.7, 1.0]),
        target_burst_capacity=chance.choice([0.0, -1.0, 20.0, 211.0]),
        max_scale_up_rate=chance.choice([1.5, 2.0, 1000.0]),
        max_scale_down_rate=chance.choice([1.1, 2.0, 10.0]),
        panic_threshold_percentage=chance.choice([110.0, 200.0, 1000.0]),
        window_s=window,
        scale_down_delay_s=chance.choice([0.0, 0.0, 5.0, 30.0]),
        activation_scale=chance.choice([1, 1, 3]),
    )
    panic_window = max(1, int(window * chance.choice([0.1, 0.3, 1.0]) + 0.5))
    stable, panic = BucketWindow(window), BucketWindow(panic_window)
    twin = PlainKpa(
        target_of(spec),
        total,
        spec.target_burst_capacity,
        spec.max_scale_up_rate,
        spec.max_scale_down_rate,
        spec.panic_threshold_percentage / 100,
        window,
        panic_window,
        spec.scale_down_delay_s,
        spec.activation_scale,
    )
    ready = chance.choice([0, 1, 1, 4])
    decider = Decider.started(spec, ready, 0.0)
    twin.begin(ready, 0.0)
    load, desired, without_load_until = 0.0, ready, 0
    for second in range(1, 160):
        load = max(0.0, load + chance.choice([0, 0, 0, 1, -1, 8, -8, 50, -50]) * total * chance.random() / 4)
        if chance.random() < 0.01:
            without_load_until = second + chance.choice([3, 15, 70])
        if second >= without_load_until:
            for window_ in (stable, panic):
                window_.record(second, load)
            twin.record(second, load)
        if second % 2 == 0:
            now = second + chance.choice([0.0, 0.25, 0.9])
            expected = twin.scale(now, ready)
            averages = stable.average(now), panic.average(now)
            if averages[0] is None or averages[1] is None:
                assert expected is None
                continue
            tick = decider.tick(now, ready, averages[0], averages[1])
            assert (tick.desired, tick.excess_burst_capacity) == expected, f"at {now:g} s with {ready} ready"
            desired = tick.desired
        if chance.random() < 0.3:  # the fleet lags behind
            ready += (desired > ready) - (desired < ready) if chance.random() < 0.5 else desired - ready
