"""Knative's autoscaler as a policy of two loops: a scrape every second, a tick every two."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.kubernetes.kpa.decider import SLOT_S, Decider, DeciderConfig
from dynamo_sim.autoscaling.kubernetes.kpa.scaler import Scaler
from dynamo_sim.autoscaling.kubernetes.kpa.settings import KpaSettings
from dynamo_sim.autoscaling.kubernetes.kpa.window import BucketWindow
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policy import KNATIVE, Loop, Policy
from dynamo_sim.metrics.readings import Reading, Threshold

SCRAPE_S = 1.0
"""Seconds between two scrapes."""

_CONCURRENCY = MetricQuery("in_flight_s", "increase", "sum", SCRAPE_S)
_STARTED = MetricQuery("requests_started", "increase", "sum", SCRAPE_S)
_IN_FRONT = MetricQuery("router_queue_s", "increase", window_s=SCRAPE_S)
_WAITING = MetricQuery("router_queue")


class KpaScrape(Policy):
    """Fills both windows, once a second.

    The request-seconds the workers spent in the last second are their time-weighted mean concurrency in it.
    """

    is_recorded = False
    direct = True

    def __init__(self, settings: KpaSettings) -> None:
        concurrency = settings.metric == "concurrency"
        self._workers = _CONCURRENCY if concurrency else _STARTED
        self._front = _IN_FRONT if concurrency else _WAITING
        self.reads = (self._workers, self._front)
        self.stable = BucketWindow(settings.window_s)
        self.panic = BucketWindow(settings.panic_window_s)

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        load = (view.value(self._workers) or 0.0) + (view.value(self._front) or 0.0)
        self.stable.record(now_s, load)
        self.panic.record(now_s, load)
        return Decision(None, "scrape")


class KpaTick(Policy):
    """Decides, every two seconds."""

    reads = ()
    direct = True

    def __init__(self, settings: KpaSettings, scrape: KpaScrape) -> None:
        self.settings = settings
        self.scaler = Scaler(settings)
        self.decider: Decider | None = None
        self._scrape = scrape

    def readings(self) -> list[Reading]:
        unit = "requests" if self.settings.metric == "concurrency" else "requests/s"
        limit = Threshold(self.settings.target_value, per_worker=True)
        return [Reading(name, f"{unit} in total", (limit,)) for name in ("stable", "panic")]

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        settings, active = self.settings, fleet.active
        if self.decider is None:
            config = DeciderConfig(
                target=settings.target_value,
                total=settings.total,
                target_burst_capacity=settings.target_burst_capacity,
                max_scale_up_rate=settings.max_scale_up_rate,
                max_scale_down_rate=settings.max_scale_down_rate,
                panic_threshold=settings.panic_threshold_percentage / 100,
                stable_window_s=settings.window_s,
                scale_down_delay_s=settings.scale_down_delay_s,
                activation_scale=settings.activation_scale,
            )
            self.decider = Decider.started(config, active, now_s)
        stable, panic = self._scrape.stable.average(now_s), self._scrape.panic.average(now_s)
        values: dict[str, float | None] = {"stable": stable, "panic": panic, "target": settings.target_value}
        if stable is None or panic is None:
            return Decision(None, "no data", values=values)
        tick = self.decider.tick(now_s, active, stable, panic)
        values["excess_burst_capacity"] = float(tick.excess_burst_capacity)
        target, reason = self.scaler.target(tick.desired, now_s, active, fleet.effective)
        if tick.in_panic and reason == "stable":
            reason = "panic"
        return Decision(target, reason, tick.desired, tick.desired, values, hold=self.scaler.inactive)


class KpaPolicy(Policy):
    """A Knative revision's autoscaler.

    Args:
        settings: annotations over the cluster's configuration.
    """

    def __init__(self, settings: KpaSettings | None = None) -> None:
        self.settings = settings or KpaSettings()
        scrape = KpaScrape(self.settings)
        self.tick = KpaTick(self.settings, scrape)
        self.reads = scrape.reads
        self.loops = (
            Loop("kpa-scrape", scrape, SCRAPE_S, order=KNATIVE),
            Loop("kpa", self.tick, SLOT_S, order=KNATIVE),
        )

    def caveats(self, facts: FleetFacts) -> Iterator[str]:
        settings = self.settings
        if settings.max_scale and settings.min_scale == settings.max_scale:
            yield f"min-scale and max-scale are both {settings.max_scale}: nothing ever scales"
