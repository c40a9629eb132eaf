"""A loop, its view and a fleet put together: a toy fleet whose load is a function of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from dynamo_sim.autoscaling import (
    DecisionRecord,
    FleetView,
    KpaPolicy,
    KpaScaling,
    Loop,
    MetricsPipeline,
    MetricsSection,
    Observations,
    PolicyRunner,
    TargetEffect,
    WorkerPhase,
    WorkerView,
    load_manifest,
    loops_of,
    pipelines_for,
)
from dynamo_sim.errors import ScenarioError

HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: toy}
spec:
  minReplicas: 1
  maxReplicas: 10
  metrics:
  - type: Pods
    pods: {metric: {name: vllm_num_requests_running}, target: {type: AverageValue, averageValue: "10"}}
"""

KEDA = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: toy}
spec:
  cooldownPeriod: 60
  maxReplicaCount: 10
  triggers:
  - type: prometheus
    metadata: {query: sum(dynamo_frontend_router_queue_pending_requests), threshold: "10", activationThreshold: "0"}
"""


class Toy:
    """Load is shared evenly by the workers that are ready; without one it waits in front. Startup takes 40 s."""

    startup_s = 40.0

    def __init__(self, load: Callable[[float], float], workers: int) -> None:
        self.load = load
        self.born = dict.fromkeys(range(workers), -self.startup_s)
        self.next_id = workers
        self.held = False
        self.pipelines: list[MetricsPipeline] = []

    def ready(self, now_s: float) -> list[int]:
        return [worker for worker, born in self.born.items() if born + self.startup_s <= now_s]

    # the fleet

    def fleet_view(self, now_s: float) -> FleetView:
        views = []
        for worker, born in self.born.items():
            ready_s = born + self.startup_s
            is_ready = ready_s <= now_s
            phase = WorkerPhase.READY if is_ready else WorkerPhase.LOADING
            views.append(WorkerView(worker, phase, born, ready_s if is_ready else None))
        return FleetView(tuple(views), self.startup_s)

    def apply_target(self, target: int, now_s: float) -> TargetEffect:
        added = []
        while len(self.born) < target:
            self.born[self.next_id] = now_s
            added.append(self.next_id)
            self.next_id += 1
        marked = []
        while len(self.born) > target:
            worker = max(self.born)
            for pipeline in self.pipelines:
                pipeline.worker_removed(worker, now_s)
            del self.born[worker]
            marked.append(worker)
        return TargetEffect(added=tuple(added), cancelled=(), marked=tuple(marked))

    def hold(self, held: bool, now_s: float) -> None:
        self.held = held

    # exact metrics

    def share(self, now_s: float) -> float:
        ready = 0 if self.held else len(self.ready(now_s))
        return self.load(now_s) / ready if ready else 0.0

    def sample(self, worker_id: int, now_s: float, names: Sequence[str]) -> Mapping[str, float]:
        share = self.share(now_s)
        # a load that changes in steps of whole seconds: request-seconds up to now, roughly
        return {name: share * now_s if name.endswith("_s") else share for name in names}

    def sample_fleet(self, now_s: float, names: Sequence[str]) -> Mapping[str, float]:
        waiting = self.load(now_s) if self.held or not self.ready(now_s) else 0.0
        return {name: waiting * now_s if name.endswith("_s") else waiting for name in names}

    def observations(self, worker_id: int, metric: str, since_s: float, until_s: float) -> Observations:
        return Observations(np.empty(0), np.empty(0))

    def bridge(self, now_s: float) -> Mapping[str, Any]:
        return {}


def simulate(policy: Any, toy: Toy, until_s: float, settings: MetricsSection) -> list[DecisionRecord]:
    """What a process does: wait, bring the metrics up to date, evaluate the loops."""
    loops = loops_of(policy, "it")
    toy.pipelines, views = pipelines_for(loops, toy, settings)
    scaler = PolicyRunner(loops, views)
    known: set[int] = set()
    records = []
    while scaler.next_ms <= until_s * 1000:
        now_s = min(scaler.next_ms / 1000, *(pipeline.next_scrape_s for pipeline in toy.pipelines))
        for worker in toy.ready(now_s):
            if worker not in known:
                known.add(worker)
                for pipeline in toy.pipelines:
                    pipeline.worker_ready(worker, max(0.0, toy.born[worker] + toy.startup_s))
        for pipeline in toy.pipelines:
            pipeline.scrape_due(now_s)
        records += scaler.run_due(now_s * 1000, toy)
    return records


def sizes(records: list[DecisionRecord]) -> list[tuple[float, int]]:
    return [(record.at_s, record.target) for record in records if record.target != record.current]


def test_an_hpa_follows_a_step_and_forgets_after_its_window() -> None:
    toy = Toy(lambda now: 55.0 if now < 300 else 5.0, 1)
    records = simulate(load_manifest(HPA).policy(), toy, 900, MetricsSection(scrape_aligned=True))
    assert sizes(records)[:2] == [(15.0, 4), (30.0, 6)]  # the starting ones count as 0: then 6, not 22
    assert sizes(records)[-1] == (600.0, 1)


def test_keda_wakes_a_fleet_by_what_waits_in_front_of_it() -> None:
    toy = Toy(lambda now: 25.0 if 50 <= now < 200 else 0.0, 0)
    records = simulate(load_manifest(KEDA).policy(), toy, 600, MetricsSection(scrape_aligned=True))
    found = sizes(records)
    assert found[0] == (60.0, 1)
    assert found[1] == (60.0, 3)  # the HPA of the same instant
    assert found[-1][1] == 0


def test_knative_panics_waits_and_goes_to_zero() -> None:
    toy = Toy(lambda now: 30.0 if now < 100 else 0.0, 1)
    settings = KpaScaling(target=10, utilization=1.0)
    records = simulate(KpaPolicy(settings), toy, 400, MetricsSection())
    found = sizes(records)
    assert all(record.loop == "kpa" for record in records)
    assert found[0][1] == 3
    assert found[-1][1] == 0
    inactive_s = next(record.at_s for record in records if record.reason == "inactive")
    assert (
        found[-1][0] == inactive_s + 3.0
    )  # the activator has been in the path for longer than the grace period
    assert not any(record.hold for record in records)


class Reader:
    def __init__(self, direct: bool, *reads: str) -> None:
        self.direct = direct
        if reads:
            self.reads = reads

    def decide(self, now_s: float, view: Any, fleet: FleetView) -> None:
        return None


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        (Reader(False, "ttft"), Reader(True, "ttft", "waiting"), "ttft"),
        (Reader(True, "itl"), Reader(True, "itl"), "itl"),
        (Reader(False), Reader(True, "e2e"), "e2e"),
        (Reader(False, "ttft"), Reader(False, "ttft"), None),
        (Reader(False, "ttft"), Reader(True, "waiting"), None),
    ],
)
def test_a_histogram_has_one_reader(first: Reader, second: Reader, shared: str | None) -> None:
    loops = [Loop("a", first, 15.0), Loop("b", second, 15.0)]
    toy = Toy(lambda now_s: 0.0, 1)
    if shared is None:
        assert len(pipelines_for(loops, toy, MetricsSection())[1]) == 2
    else:
        with pytest.raises(ScenarioError, match=f"^{shared}: read by more than one loop"):
            pipelines_for(loops, toy, MetricsSection())
