"""Knative's autoscaler as a policy of two loops: a scrape every second, a tick every two."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dynamo_sim.autoscaling.decision import Decision
from dynamo_sim.autoscaling.fleet_facts import FleetFacts
from dynamo_sim.autoscaling.fleet_view import FleetView, View
from dynamo_sim.autoscaling.kubernetes.kpa.decider import SLOT_S, Decider
from dynamo_sim.autoscaling.kubernetes.kpa.scaler import UNKNOWN, Scaler
from dynamo_sim.autoscaling.kubernetes.kpa.targets import (
    initial_excess_burst_capacity,
    panic_window_s,
    target_of,
)
from dynamo_sim.autoscaling.kubernetes.kpa.window import BucketWindow
from dynamo_sim.autoscaling.metrics.query import MetricQuery
from dynamo_sim.autoscaling.policy import KNATIVE, Loop, Policy
from dynamo_sim.records.readings import Reading, Threshold
from dynamo_sim.scenario.autoscaler.kpa import KpaScaling

SCRAPE_S = 1.0
"""Seconds between two scrapes."""

POKE_S = 0.1
"""From a first request at zero to the autoscaler's decision."""

ROUNDING_S = 1e-6

_CONCURRENCY = MetricQuery("in_flight_s", "increase", "sum", SCRAPE_S)
_STARTED = MetricQuery("requests_started", "increase", "sum", SCRAPE_S)
_IN_FRONT = MetricQuery("router_queue_s", "increase", window_s=SCRAPE_S)
_WAITING = MetricQuery("router_queue")


class KpaScrape(Policy):
    """Fills both windows, once a second.

    The request-seconds the workers spent in the last second are their time-weighted mean concurrency in it.

    Attributes:
        load: of the last second.
    """

    is_recorded = False
    direct = True

    def __init__(self, spec: KpaScaling) -> None:
        concurrency = spec.metric == "concurrency"
        self._workers = _CONCURRENCY if concurrency else _STARTED
        self._front = _IN_FRONT if concurrency else _WAITING
        self.reads = (self._workers, self._front)
        self.load = 0.0
        self.stable = BucketWindow(spec.window_s)
        self.panic = BucketWindow(panic_window_s(spec))

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        self.load = (view.value(self._workers) or 0.0) + (view.value(self._front) or 0.0)
        if (
            fleet.active or self.load
        ):  # without a worker nothing is scraped, and without requests nothing reported
            self.record(now_s, self.load)
        return Decision(None, "scrape")

    def record(self, now_s: float, load: float) -> None:
        """Add to both windows."""
        self.stable.record(now_s, load)
        self.panic.record(now_s, load)


class KpaTick(Policy):
    """Decides every two seconds, and when a request finds no worker.

    Between ticks it is evaluated only where the scaler has asked for a check.
    """

    reads = ()
    direct = True
    min_wait_s = 0.0  # a check may fall shortly before or after a tick

    def __init__(self, spec: KpaScaling, scrape: KpaScrape) -> None:
        self.spec = spec
        self.scaler = Scaler(spec)
        self._target = target_of(spec)
        self.decider: Decider | None = None
        self._scrape = scrape
        self._next_tick_s = -math.inf
        self._desired = UNKNOWN
        self._excess_burst_capacity = initial_excess_burst_capacity(spec)
        self._state: tuple[int, bool, int] | None = None
        self._reason = self._limit = ""
        self._check_s = self._poke_s = math.inf
        if self._excess_burst_capacity < 0:
            self.scaler.proxied_since_s = 0.0

    def readings(self) -> list[Reading]:
        unit = "requests" if self.spec.metric == "concurrency" else "requests/s"
        limit = Threshold(self._target, per_worker=True)
        return [Reading(name, f"{unit} in total", (limit,)) for name in ("stable", "panic")]

    def request_waits(self, now_s: float) -> float | None:
        """At zero the activator reports the first request at once, and the autoscaler does not wait for its tick."""
        if self._desired != 0:
            return None
        self._poke_s = min(self._poke_s, now_s + POKE_S)
        return self._poke_s

    def decide(self, now_s: float, view: View, fleet: FleetView) -> Decision:
        self._evaluate(now_s, fleet.active)
        # As in the controller, nothing is reconciled unless something has changed, or a check was asked for.
        state = self._desired, self._excess_burst_capacity < 0, fleet.active
        target = None
        if state != self._state or now_s >= self._check_s - ROUNDING_S:
            self._state = state
            target, self._reason = self._reconciled(now_s, fleet)
            self._check_s = math.inf if self.scaler.next_check_s is None else self.scaler.next_check_s
        next_s = min(self._check_s, self._poke_s)
        stable, panic = self._scrape.stable.average(now_s), self._scrape.panic.average(now_s)
        values: dict[str, float | None] = {
            "stable": stable,
            "panic": panic,
            "target": self._target,
        }
        reason, desired = self._reason, None if self._desired == UNKNOWN else self._desired
        if desired is not None:
            values["excess_burst_capacity"] = float(self._excess_burst_capacity)
            if reason == "stable" and self.decider is not None:
                reason = "panic" if self.decider.panic_since_s is not None else reason
                reason = f"{reason}, {self._limit}" if self._limit else reason
        return Decision(
            target,
            reason,
            desired,
            desired,
            values,
            next_at_s=next_s if now_s < next_s < self._next_tick_s else None,
        )

    def _evaluate(self, now_s: float, active: int) -> None:
        """Let the decider decide where it is time for that: at a tick, or when a first request pokes it."""
        if now_s >= self._poke_s - ROUNDING_S:
            self._poke_s = math.inf
            self._scrape.record(now_s, 1.0)
        elif now_s >= self._next_tick_s - ROUNDING_S:
            self._next_tick_s = now_s + SLOT_S
        elif self._desired != 0 or not self._scrape.load:
            return  # a check between ticks, and nobody has come since
        self._tick(now_s, active)

    def _reconciled(self, now_s: float, fleet: FleetView) -> tuple[int | None, str]:
        """(target or None, reason) of the scaler for what the decider has desired last."""
        needed = self.scaler.threshold
        times = sorted(w.ready_since_s for w in fleet.workers if w.is_ready and w.ready_since_s is not None)
        return self.scaler.target(
            self._desired,
            now_s,
            fleet.active,
            fleet.effective,
            self._excess_burst_capacity,
            times[needed - 1] if 0 < needed <= len(times) else None,
        )

    def _tick(self, now_s: float, active: int) -> None:
        """Let the decider decide by the averages."""
        if self.decider is None:
            self.decider = Decider.started(self.spec, active, now_s)
        stable, panic = self._scrape.stable.average(now_s), self._scrape.panic.average(now_s)
        if stable is not None and panic is not None:
            found = self.decider.tick(now_s, active, stable, panic)
            self._desired, self._limit = found.desired, found.limit
            self._excess_burst_capacity = found.excess_burst_capacity


class KpaPolicy(Policy):
    """A Knative revision's autoscaler.

    Args:
        spec: annotations over the cluster's configuration.
    """

    def __init__(self, spec: KpaScaling | None = None) -> None:
        self.spec = spec or KpaScaling()
        scrape = KpaScrape(self.spec)
        self.tick = KpaTick(self.spec, scrape)
        self.reads = scrape.reads
        self.loops = (
            Loop("kpa-scrape", scrape, SCRAPE_S, order=KNATIVE),
            Loop("kpa", self.tick, SLOT_S, order=KNATIVE),
        )

    def caveats(self, facts: FleetFacts) -> Iterator[str]:
        spec = self.spec
        if spec.max_scale and spec.min_scale == spec.max_scale:
            yield f"min-scale and max-scale are both {spec.max_scale}: nothing ever scales"
