"""The autoscaler as a controller of a serving fleet (`spec 10, 1`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from simpy.events import Event

from dynamo_sim.autoscaling.decision import DecisionRecord
from dynamo_sim.autoscaling.fleet_view import FleetView, WorkerPhase, WorkerView
from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.loop import PolicyRunner
from dynamo_sim.autoscaling.metrics.pipeline import MetricsPipeline, scrape_offsets
from dynamo_sim.autoscaling.metrics.sampler import Observations
from dynamo_sim.autoscaling.policy import Loop
from dynamo_sim.autoscaling.wiring import pipelines_for
from dynamo_sim.clock import Phase
from dynamo_sim.fleet.fleet import TargetEffect
from dynamo_sim.metric_catalogue import METRICS
from dynamo_sim.records.fleet_changes import FleetCause
from dynamo_sim.records.readings import Reading
from dynamo_sim.scenario.autoscaler.metrics import MetricsSection
from dynamo_sim.serving.controller import ControlledFleet, IdleGap, ServedFleet
from dynamo_sim.serving.pool import Pool


class AutoscalerController:
    """Lets the loops of one or more policies decide about the fleet, and keeps the metrics that they read.

    Thin: the loops decide (`PolicyRunner`), the pipeline says what is visible (`MetricsPipeline`), the serving applies.
    An evaluation runs last in its instant; a scrape brings the tally of a worker up to date and ends nobody's stretch.

    Args:
        loops: who is evaluated, and when.
        settings: how metrics travel; policies that say ``direct`` see exact values instead.
        bounds, budget: limits of every target.
        seed: of the scenario; places the scrapes in their interval.
        startup_s: how long a new worker is expected to take.
        gpus_per_worker: GPUs one worker occupies.
        warnings: what was to be said about the policies before the run.

    Attributes:
        decisions: of every evaluation, in order.
    """

    waits_for_workers = True
    reads_as_reference = False

    def __init__(
        self,
        loops: Sequence[Loop],
        settings: MetricsSection,
        bounds: Bounds | None = None,
        budget: Callable[[int], int] | None = None,
        seed: int = 0,
        startup_s: float = 0.0,
        gpus_per_worker: int = 1,
        warnings: Sequence[str] = (),
    ) -> None:
        self.warnings = list(warnings)
        self.decisions: list[DecisionRecord] = []
        self.wants_passes = any(loop.policy.needs_passes for loop in loops)
        self._loops = loops
        self._settings = settings
        self._bounds = bounds
        self._budget = budget
        self._seed = seed
        self._startup_s = startup_s
        self._gpus_per_worker = gpus_per_worker
        self._gap = IdleGap("the policy")
        self._pipelines: list[MetricsPipeline] = []
        self._scraping = False
        self._scrape_s = math.inf  # when the next scrape is due, as far as the timer knows

    def attach(self, pools: Mapping[str, Pool], serving: ServedFleet) -> None:
        """Take over the one fleet, which has not served anything yet."""
        ((name, pool),) = pools.items()
        reads = [loop.policy.queries for loop in self._loops]
        asked = [METRICS[query.metric] for queries in reads for query in queries or ()]
        names = frozenset(name for metric in asked for name in (metric.name, *metric.columns))
        pool.keep_tallies(None if any(queries is None for queries in reads) else names)
        self._serving = serving
        sampler = FleetSampler(pool, serving)
        offsets = scrape_offsets(self._seed, name)
        self._pipelines, views = pipelines_for(self._loops, sampler, self._settings, offsets)
        self._handle = _Handle(pool, self._startup_s, self._gpus_per_worker)
        self._autoscaler = PolicyRunner(self._loops, views, self._bounds, self._budget)
        pool.listen(self._fleet_changed)
        for worker_id in pool.fleet.workers:
            self._fleet_changed(FleetCause.ADDED, (worker_id,), 0.0)
            self._fleet_changed(FleetCause.READY, (worker_id,), 0.0)
        self._clock = pool.clock
        self._scrape_timer = self._clock.timer()
        if any(not pipeline.settings.perfect for pipeline in self._pipelines):
            self._scraping = True
            self._clock.start(self._scrape())

    # ------------------------------------------------------------ the fleet asks

    def first_tick_ms(self) -> float | None:
        return self._autoscaler.next_ms

    def on_tick(self, now_ms: float, fleet: ControlledFleet) -> float | None:
        self.decisions += self._autoscaler.run_due(now_ms, self._handle)
        self._gap.evaluated(now_ms, self._serving.idle_until_ms())
        return self._autoscaler.next_ms

    def request_waits(self, now_ms: float) -> float | None:
        self._autoscaler.request_waits(now_ms)
        return self._autoscaler.next_ms

    def notes(self, end_ms: float) -> list[str]:
        """What there is to say after a run that ended then."""
        if not self.decisions:
            return [
                f"no policy was ever evaluated: the run ended at {end_ms / 1000.0:g} s, before the first evaluation"
            ]
        unseen = [
            query
            for pipeline in self._pipelines
            for query, anything in pipeline.answered.items()
            if not anything
        ]
        return [
            f"{query} never had data in the whole run, at none of the evaluations"
            for query in dict.fromkeys(unseen)
        ]

    def decision_rows(self) -> list[dict[str, Any]]:
        return [decision.as_row() for decision in self.decisions]

    def readings(self) -> list[Reading]:
        """Units and thresholds of the values in the decisions, as far as the policies say."""
        found: dict[str, Reading] = {}
        for loop in self._loops:
            for reading in loop.policy.readings() or ():
                before = found.get(reading.name, reading)
                limits = dict.fromkeys((*before.thresholds, *reading.thresholds))
                found[reading.name] = replace(
                    before, unit=before.unit or reading.unit, thresholds=tuple(limits)
                )
        return list(found.values())

    def _fleet_changed(self, cause: FleetCause, worker_ids: tuple[int, ...], now_ms: float) -> None:
        now_s = now_ms / 1000.0
        for pipeline in self._pipelines:
            for worker_id in worker_ids:
                if cause is FleetCause.ADDED:
                    pipeline.worker_created(worker_id, now_s)
                elif cause is FleetCause.READY:
                    pipeline.worker_ready(worker_id, now_s)
                elif cause.ends:
                    pipeline.worker_removed(worker_id, now_s)
        if self._scraping:
            self._arm_scrape()

    def _scrape(self) -> Generator[Event, None, None]:
        while True:
            self._arm_scrape()
            yield self._scrape_timer
            due_s, self._scrape_s = self._scrape_s, math.inf
            self._scrape_timer = self._clock.timer()
            for pipeline in self._pipelines:
                pipeline.scrape_due(due_s)

    def _arm_scrape(self) -> None:
        """Be woken for the next scrape; a new worker may bring it forward."""
        due_s = min(pipeline.next_scrape_s for pipeline in self._pipelines)
        if due_s >= self._scrape_s:
            return
        at_ms = max(due_s * 1000.0, self._clock.now)
        if self._scrape_s == math.inf:
            self._scrape_timer.arm(at_ms, Phase.SCRAPE)
        else:
            self._scrape_timer = self._scrape_timer.moved_to(at_ms, Phase.SCRAPE)
        self._scrape_s = due_s


class FleetSampler:
    """Answers the metrics pipeline from the tallies of a serving fleet (`Sampler`)."""

    def __init__(self, pool: Pool, serving: ServedFleet) -> None:
        self._pool = pool
        self._serving = serving

    def sample(self, worker_id: int, now_s: float, names: Sequence[str]) -> Mapping[str, float] | None:
        tallies = self._pool.tallies
        if tallies is None or worker_id not in tallies:
            return None
        self._pool.bring_up_to_date(worker_id)
        values = {name: tallies[worker_id].value(name, now_s * 1000.0) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def sample_fleet(self, now_s: float, names: Sequence[str]) -> Mapping[str, float]:
        values = {
            "router_queue": float(self._pool.router.queued_count),
            "active_workers": float(len(self._pool.active_worker_ids())),
            "router_queue_s": self._pool.router.queued_ms(self._pool.clock.now) / 1000.0,
        }
        return {name: values[name] for name in names if name in values}

    def observations(self, worker_id: int, metric: str, since_s: float, until_s: float) -> Observations:
        tallies = self._pool.tallies
        found = [] if tallies is None else list(tallies[worker_id].observations(metric, until_s * 1000.0))
        times = np.array([at_ms / 1000.0 for at_ms, _, _ in found], dtype=np.float64)
        values = np.array([value for _, value, _ in found], dtype=np.float64)
        return Observations(times, values, np.array([count for _, _, count in found], dtype=np.int64))

    def bridge(self, now_s: float) -> Mapping[str, Any]:
        return self._serving.metrics()


class _Handle:
    """What the loops may do with the fleet (`FleetHandle`)."""

    def __init__(self, pool: Pool, startup_s: float, gpus_per_worker: int) -> None:
        self._pool = pool
        self._startup_s = startup_s
        self._gpus_per_worker = gpus_per_worker

    def fleet_view(self, now_s: float) -> FleetView:
        fleet, tallies = self._pool.fleet, self._pool.tallies
        assert tallies is not None
        workers = []
        for worker_id in fleet.workers:
            phase = WorkerPhase.READY
            if worker_id in fleet.draining:
                phase = WorkerPhase.DRAINING
            elif worker_id in fleet.starting:
                phase = WorkerPhase.LOADING
            tally = tallies[worker_id]
            ready_s = None if tally.ready_ms is None else tally.ready_ms / 1000.0
            workers.append(WorkerView(worker_id, phase, tally.created_ms / 1000.0, ready_s))
        return FleetView(tuple(workers), self._startup_s, self._gpus_per_worker)

    def apply_target(self, target: int, now_s: float) -> TargetEffect:
        return self._pool.apply_target(target)

    def hold(self, held: bool, now_s: float) -> None:
        self._pool.router.on_hold = held
