"""Scrapes and queries: what is visible now, not what is true now (`spec 10, 8.1 to 8.3`)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from dynamo_sim.autoscaling.fleet_view import Sample, reduced
from dynamo_sim.autoscaling.metrics.histogram import ObservationLog
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.metrics.sampler import Sampler
from dynamo_sim.autoscaling.metrics.target import Target, summary
from dynamo_sim.errors import SimulationError
from dynamo_sim.metric_catalogue import (
    FLEET_COUNTERS,
    FLEET_GAUGES,
    HISTOGRAMS,
    METRICS,
    WORKER_COUNTERS,
    WORKER_GAUGES,
    Kind,
)
from dynamo_sim.random_streams import stream
from dynamo_sim.scenario.autoscaler.metrics import MetricsSection

ANY_WINDOW_S = 3600.0
"""Longest window of a policy that does not say what it reads."""

FLEET = -1
"""Id of the frontend queue among the targets."""


def scrape_offsets(seed: int, fleet: str) -> Callable[[int], float]:
    """Where in the interval each target is scraped: from 0 to 1, drawn from a stream of its own."""
    return lambda target: float(stream(seed, f"{fleet}/scrape/{target}").random())


class MetricsPipeline:
    """Collects what some queries need, and answers them.

    Whoever owns it calls `worker_created`, `worker_ready` and `worker_removed` when these happen (a removal before the
    worker is forgotten), `scrape_due` at `next_scrape_s`, and `view` at a decision.

    Args:
        sampler: exact metrics.
        queries: all that will be asked; None for anything (then everything is collected).
        settings: how metrics travel.
        offset: place of a target's scrapes in the interval, from 0 to 1; see `scrape_offsets`.

    Attributes:
        histograms: those whose observations it takes from the sampler; no other pipeline may.
        answered: for every query that was asked, whether there ever was data.
    """

    def __init__(
        self,
        sampler: Sampler,
        queries: Iterable[MetricQuery] | None = None,
        settings: MetricsSection | None = None,
        offset: Callable[[int], float] | None = None,
    ) -> None:
        self.sampler = sampler
        self.settings = settings or MetricsSection()
        self.targets: dict[int, Target] = {}
        self.absent: set[str] = set()
        asked = None if queries is None else [MetricQuery.of(query) for query in queries]
        self.asked = None if asked is None else {query.metric for query in asked}
        windows = [query.window_s or self.settings.window_s for query in asked or ()]
        self.longest_s = ANY_WINDOW_S if asked is None else max(windows, default=0.0)
        self.answered: dict[MetricQuery, bool] = {}
        self._answers: dict[tuple[bool, MetricQuery], tuple[float, Any]] = {}
        self._offset = offset
        self._scrapes: list[tuple[float, int]] = []
        worker, fleet = self._columns(asked)
        self._worker_columns, self._fleet_columns = worker, fleet
        self.histograms = (
            HISTOGRAMS if self.asked is None else tuple(name for name in HISTOGRAMS if name in self.asked)
        )
        self._workers_matter = bool(worker or self.histograms)
        if fleet:
            self._open(FLEET, fleet, 0.0)

    @property
    def collects(self) -> bool:
        """Whether there is anything to collect."""
        return self._workers_matter or bool(self._fleet_columns)

    @staticmethod
    def _columns(asked: list[MetricQuery] | None) -> tuple[dict[str, int], dict[str, int]]:
        worker: list[str] = []
        fleet: list[str] = []
        if asked is None:
            worker, fleet = [*WORKER_GAUGES, *WORKER_COUNTERS], [*FLEET_GAUGES, *FLEET_COUNTERS]
        else:
            for query in asked:
                (worker if query.spec.per_worker else fleet).extend(query.spec.columns)
        return (
            {name: place for place, name in enumerate(dict.fromkeys(worker))},
            {name: place for place, name in enumerate(dict.fromkeys(fleet))},
        )

    # ------------------------------------------------------------ life of the workers

    def worker_created(self, worker_id: int, now_s: float) -> None:
        """A worker has begun to start."""
        if self._workers_matter and self.settings.scrape_while_loading and not self.settings.perfect:
            self._open(worker_id, self._worker_columns, now_s)

    def worker_ready(self, worker_id: int, now_s: float) -> None:
        """A worker is ready."""
        if self._workers_matter and worker_id not in self.targets:
            self._open(worker_id, self._worker_columns, now_s)

    def worker_removed(self, worker_id: int, now_s: float) -> None:
        """A worker leaves for good; it can be sampled one last time."""
        target = self.targets.get(worker_id)
        if target is None:
            return
        if self.settings.perfect:
            self._take(target, now_s)
            target.stale_s = now_s
        target.gone = True

    def _open(self, target_id: int, columns: dict[str, int], now_s: float) -> None:
        target = self.targets[target_id] = Target(target_id, columns, self.settings, now_s)
        if target_id != FLEET:
            target.logs = {name: ObservationLog() for name in self.histograms}
        if self.settings.perfect:
            # Counters begin at 0; what gauges were, nobody has sampled.
            row = [0.0 if METRICS[name].kind is Kind.COUNTER else math.nan for name in columns]
            target.series.append(now_s, row, -math.inf)
            return
        interval = self.settings.scrape_interval_s
        shift = (
            0.0
            if self.settings.scrape_aligned or self._offset is None
            else self._offset(target_id) * interval
        )
        target.shift_s = shift
        target.scrapes = max(0, math.ceil((now_s - shift) / interval))
        heapq.heappush(self._scrapes, (target.due_s, target_id))

    # ------------------------------------------------------------ scrapes

    @property
    def next_scrape_s(self) -> float:
        """Time of the next scrape; infinity when there is none."""
        return self._scrapes[0][0] if self._scrapes else math.inf

    def scrape_due(self, now_s: float) -> None:
        """Scrape every target that is due by now."""
        scrapes = self._scrapes
        while scrapes and scrapes[0][0] <= now_s:
            due_s, target_id = heapq.heappop(scrapes)
            target = self.targets[target_id]
            if target.gone:
                if self.settings.staleness_markers and target.stale_s is None:
                    target.stale_s = due_s
                target.over = True
                continue
            self._take(target, due_s)
            target.scrapes += 1
            heapq.heappush(scrapes, (target.due_s, target_id))

    def _take(self, target: Target, now_s: float) -> None:
        sampler, names = self.sampler, tuple(target.columns)
        if target.id == FLEET:
            found: Mapping[str, float] | None = sampler.sample_fleet(now_s, names)
        else:
            found = sampler.sample(target.id, now_s, names)
        if found is None:
            if self.settings.staleness_markers and target.stale_s is None:
                target.stale_s = now_s
            return
        target.stale_s = None
        if len(found) < len(names):
            self.absent.update(name for name in names if name not in found)
        keep_from_s = now_s - max(self.longest_s, self.settings.lookback_s) - self.settings.scrape_delay_s
        target.series.append(now_s, [found.get(name, math.nan) for name in names], keep_from_s)
        for name, log in target.logs.items():
            log.add(sampler.observations(target.id, name, target.observed_s, now_s), keep_from_s)
        target.observed_s = now_s

    def _forget_gone(self, now_s: float) -> None:
        limit_s = now_s - max(self.longest_s, self.settings.lookback_s) - self.settings.scrape_delay_s
        perfect = self.settings.perfect
        gone = [t for t in self.targets.values() if t.gone and (t.over or perfect)]
        for target in gone:
            times = target.series.times
            if not len(times) or times[-1] < limit_s:
                del self.targets[target.id]

    # ------------------------------------------------------------ queries

    def view(self, now_s: float) -> PipelineView:
        """What is visible at ``now_s``, scrapes of this very moment included."""
        self.scrape_due(now_s)
        self._forget_gone(now_s)
        return PipelineView(self, now_s)

    def cached(self, key: tuple[bool, MetricQuery], now_s: float, compute: Callable[[], Any]) -> Any:
        """An answer that is young enough, or a new one (an adapter's relist interval)."""
        if not self.settings.query_interval_s:
            return compute()
        known = self._answers.get(key)
        if known is None or now_s - known[0] >= self.settings.query_interval_s:
            known = self._answers[key] = (now_s, compute())
        return known[1]

    def sample_all(self, now_s: float) -> None:
        """With perfect metrics: sample everything that exists."""
        for target in self.targets.values():
            if not target.gone:
                self._take(target, now_s)


class PipelineView:
    """The view of one decision."""

    def __init__(self, pipeline: MetricsPipeline, now_s: float) -> None:
        self.now_s = now_s
        self._pipeline = pipeline
        self._evaluated = not pipeline.settings.perfect

    def value(self, query: MetricQuery | str) -> float | None:
        """One number for the whole fleet."""
        asked = self._check(query)
        value = self._pipeline.cached((False, asked), self.now_s, lambda: self._value(asked))
        self._note(asked, value is not None)
        return None if value is None else value * asked.scale

    def per_worker(self, query: MetricQuery | str) -> dict[int, Sample]:
        """A sample of every worker that has one, by worker id."""
        asked = self._check(query)
        found: dict[int, Sample] = self._pipeline.cached(
            (True, asked), self.now_s, lambda: self._samples(asked)
        )
        self._note(asked, bool(found))
        return found

    def _note(self, asked: MetricQuery, anything: bool) -> None:
        answered = self._pipeline.answered
        answered[asked] = anything or answered.get(asked, False)

    def _samples(self, asked: MetricQuery) -> dict[int, Sample]:
        found = {}
        for target in self._targets(asked):
            sample = target.sample(asked, self.now_s)
            if sample is not None:
                found[target.id] = Sample(sample.value * asked.scale, sample.at_s, sample.window_s)
        return found

    def bridge(self) -> Mapping[str, Any]:
        """Passes and traffic since the last evaluation."""
        return self._pipeline.sampler.bridge(self.now_s)

    def _check(self, query: MetricQuery | str) -> MetricQuery:
        asked = MetricQuery.of(query)
        pipeline = self._pipeline
        if pipeline.asked is not None and asked.metric not in pipeline.asked:
            raise SimulationError(f"the policy asks for {asked.metric}, which it does not name in its reads")
        if asked.window_s is not None and asked.window_s > pipeline.longest_s:
            raise SimulationError(
                f"the policy asks for {asked} over more than {pipeline.longest_s:g} s; name it in its reads"
            )
        if not self._evaluated:
            self._evaluated = True
            pipeline.sample_all(self.now_s)
        missing = [name for name in asked.spec.columns if name in pipeline.absent]
        if missing:
            raise SimulationError(f"the fleet does not export {missing[0]}, which the policy asks for")
        return asked

    def _targets(self, query: MetricQuery) -> list[Target]:
        targets = self._pipeline.targets
        if not query.spec.per_worker:
            return [targets[FLEET]] if FLEET in targets else []
        return [target for target_id, target in targets.items() if target_id != FLEET]

    def _value(self, query: MetricQuery) -> float | None:
        targets = self._targets(query)
        if query.reduce == "merge" and query.spec.kind is Kind.RATIO:
            parts = [part for target in targets if (part := target.ratio(query, self.now_s)) is not None]
            below = sum(part[1] for part in parts)
            return min(sum(part[0] for part in parts) / below, 1.0) if below > 0 else None
        if query.reduce == "merge":
            observed = [target.observed(query, self.now_s) for target in targets]
            if not observed:
                return None
            settings = self._pipeline.settings
            window_s = settings.window_s if query.window_s is None else query.window_s
            values = np.concatenate([values for values, _ in observed])
            counts = np.concatenate([counts for _, counts in observed])
            return summary(values, counts, query, window_s, settings)
        samples = [target.sample(query, self.now_s) for target in targets]
        return reduced([sample.value for sample in samples if sample is not None], query.reduce or "avg")
